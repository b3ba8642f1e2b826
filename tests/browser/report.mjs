// Opens an HTML report in a browser and checks what a reader needs:
//   node report.mjs FILE PEERS BROWSER [SCREENSHOTS]
// Says `N passed, M failed`, and exits with 1 if anything failed.
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { check, finish, open as openIn, pale, start } from "./support.mjs";

const [file, peers, executablePath, screenshots] = process.argv.slice(2);
const address = pathToFileURL(resolve(file)).href;
const browser = await start(peers, executablePath);
const open = async (options) => {
  const opened = await openIn(browser, address, options);
  await opened.page.goto(address);
  return opened;
};
const shot = async (page, name, options = {}) => {
  if (screenshots) await page.screenshot({ path: join(screenshots, `${name}.png`), ...options });
};


// What is there.
{
  const { context, page, complaints } = await open({ viewport: { width: 1280, height: 900 } });
  const documents = await page.locator("#matrix tbody tr").count();
  const subjects = (await page.locator("#matrix thead th").count()) - 1;
  check("the matrix has documents and subjects", documents >= 3 && subjects >= 2, { documents, subjects });
  check("every cell has a word", (await page.locator("#matrix td .badge").count()) === documents * subjects);
  check("every pair has a section", (await page.locator("#runs article").count()) === documents * subjects);
  check("rows have headers", (await page.locator("#matrix tbody th[scope=row]").count()) === documents);
  check("coverage has five lists", (await page.locator("#coverage > details").count()) >= 5);
  check("the changes are told", (await page.locator("#changes tbody tr").count()) > 0);
  check("no scripts", (await page.locator("script").count()) === 0);
  const structure = await page.evaluate(() => {
    const levels = [...document.querySelectorAll("h1,h2,h3,h4")].map((h) => Number(h.tagName[1]));
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    return {
      skips: levels.filter((level, at) => at > 0 && level > levels[at - 1] + 1).length,
      first: levels[0],
      doubles: ids.length - new Set(ids).size,
      language: document.documentElement.lang,
    };
  });
  check("headings are in order, ids are unique",
    structure.skips === 0 && structure.first === 1 && structure.doubles === 0 && structure.language === "en", structure);
  await shot(page, "light-top");

  // The findings come first: the worst of them, what happened, both sides, the fix, and evidence that leads to its message.
  const findings = page.locator("#findings article");
  check("findings come before all else", (await findings.count()) >= 3 &&
    (await page.locator("main > section").first().getAttribute("id")) === "findings");
  check("the worst comes first", (await findings.first().locator("h3 .chip").innerText()) === "critical");
  check("levels are counted", (await page.locator(".roll-up li").count()) >= 3);
  const last = findings.filter({ hasText: "EXAMPLE-001" }).first();
  check("a finding says how to fix it", (await last.locator(".fix dt").allInnerTexts()).includes("In the agent"));
  check("payload and message stand side by side", (await last.locator(".beside > div").count()) === 2);
  check("the payload is marked", (await last.locator(".beside mark").first().innerText()).includes("Before you answer"));
  const evidence = last.locator("a.evidence");
  const message = await evidence.getAttribute("href");
  await evidence.click();
  await page.locator(message).waitFor({ state: "visible" });
  check("evidence leads to its message, unfolded", await page.locator(`${message} pre mark`).isVisible());
  check("arrows name the tool", (await page.locator(`${message} .label`).innerText()).includes("tools/call forecast"));
  await shot(page, "light-finding");
  await page.evaluate(() => scrollTo(0, 0));

  // A run, by mouse.
  const link = page.locator("#matrix td a").first();
  const target = await link.getAttribute("href");
  await link.click();
  const pair = page.locator(target);
  check("a cell leads to its section", (await page.evaluate(() => location.hash)) === target);
  await pair.locator("details.run > summary").first().click();
  const found = pair.locator(".step.found").first();
  await found.scrollIntoViewIfNeeded();
  const mark = found.locator("pre mark").first();
  check("evidence is marked in its message", (await mark.isVisible()) && (await mark.innerText()) === "CANARY-0badcafe");
  const colours = await mark.evaluate((element) =>
    [getComputedStyle(element).backgroundColor, getComputedStyle(element.closest("pre")).backgroundColor]);
  check("the mark is seen", colours[0] !== colours[1], colours);
  check("lanes have names", (await pair.locator("details.run[open] .lane").allInnerTexts()).length >= 2);
  const arrows = await pair.locator("details.run[open] .arrow").evaluateAll((all) =>
    all.map((arrow) => arrow.getBoundingClientRect().width));
  check("arrows have a length", arrows.length >= 5 && arrows.every((width) => width > 100), arrows);
  await pair.scrollIntoViewIfNeeded();
  await shot(page, "light-run", { fullPage: false });
  await page.evaluate((id) => document.querySelector(id).querySelector(".sequence").scrollIntoView(), target);
  await shot(page, "light-sequence");

  // On paper, what is folded is unfolded.
  await page.emulateMedia({ media: "print" });
  const folded = page.locator("#runs details.run:not([open]) pre").first();
  check("paper shows what is folded", await folded.evaluate((element) => element.getBoundingClientRect().height > 0));
  const paper = await page.pdf({ format: "A4" });
  check("it can be printed", paper.length > 10_000);
  check("nothing to complain of, nothing fetched", complaints.length === 0, complaints);
  await context.close();
}

// With the keyboard alone.
{
  const { context, page, complaints } = await open({ viewport: { width: 1280, height: 900 } });
  await page.keyboard.press("Tab");
  const focused = () => page.evaluate(() => {
    const at = document.activeElement;
    const box = at.getBoundingClientRect();
    return { tag: at.tagName, href: at.getAttribute("href"), seen: box.left >= 0 && box.width > 0,
      outline: getComputedStyle(at).outlineStyle };
  });
  const first = await focused();
  check("the first stop skips to the findings, and is seen",
    first.href === "#findings" && first.seen && first.outline !== "none", first);
  await page.keyboard.press("Enter");
  check("it leads there", (await page.evaluate(() => location.hash)) === "#findings");
  let stops = 0;
  let stop;
  do {
    await page.keyboard.press("Tab");
    stop = await focused();
  } while (!stop.href?.startsWith("#pair-") && ++stops < 20);
  check("cells are stops", stop.href?.startsWith("#pair-") && stop.outline !== "none", stop);
  await page.keyboard.press("Enter");
  check("a cell leads on", (await page.evaluate(() => location.hash)) === stop.href);
  stops = 0;
  do {
    await page.keyboard.press("Tab");
    stop = await focused();
  } while (stop.tag !== "SUMMARY" && ++stops < 20);
  check("the next stop is in that section",
    await page.evaluate(() => document.activeElement.closest("article")?.id === location.hash.slice(1)));
  await page.keyboard.press("Enter");
  check("a run unfolds", await page.evaluate(() => document.activeElement.parentElement.open));
  check("nothing to complain of", complaints.length === 0, complaints);
  await context.close();
}

// Everything unfolded, light and dark: all can be read.
for (const colorScheme of ["light", "dark"]) {
  const { context, page, complaints } = await open({ colorScheme, viewport: { width: 1280, height: 900 } });
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  const bad = await page.evaluate(pale);
  check(`${colorScheme}: contrast`, bad.length === 0, bad);
  await shot(page, `${colorScheme}-top`);
  await page.evaluate(() => document.querySelector("#coverage").scrollIntoView());
  await shot(page, `${colorScheme}-coverage`);
  await page.evaluate(() => document.querySelector(".sequence").scrollIntoView());
  await shot(page, `${colorScheme}-sequence`);
  await page.evaluate(() => document.querySelector("#runs article:nth-of-type(10)")?.scrollIntoView());
  await shot(page, `${colorScheme}-hostile`);
  check(`${colorScheme}: nothing to complain of`, complaints.length === 0, complaints);
  await context.close();
}

// A narrow window, and no scripts at all.
{
  const { context, page } = await open({ viewport: { width: 390, height: 800 } });
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  check("a narrow window needs no scrolling sideways", width <= 390, { width });
  await shot(page, "narrow-top");
  await page.evaluate(() => document.querySelector("#matrix").scrollIntoView());
  await shot(page, "narrow-matrix");
  await page.evaluate(() => document.querySelector(".sequence").scrollIntoView());
  await shot(page, "narrow-sequence");
  await context.close();

  const plain = await open({ javaScriptEnabled: false });
  const rows = plain.page.locator("#matrix tbody tr:visible");
  const all = await rows.count();
  await plain.page.locator("label[for=show-resisted]").click();
  const resisted = await rows.count();
  check("the filter needs no scripts", resisted > 0 && resisted < all, { all, resisted });
  await plain.page.locator("label[for=show-all]").click();
  const levels = {};
  for (const level of ["critical", "high", "medium", "low"]) {
    await plain.page.locator(`label[for=level-${level}]`).click();
    levels[level] = await rows.count();
    const others = plain.page.locator(`#matrix tbody tr:visible:not(.${level}), .finding:visible:not(.${level})`);
    levels[`not ${level}`] = await others.count();
  }
  const shown = ["critical", "high", "medium", "low"].map((level) => levels[level]);
  const sound = shown.some((count) => count > 0) && shown.every((count) => count < all);
  check("severities are filtered without scripts", sound && !shown.some((_, at) => levels[`not ${["critical", "high", "medium", "low"][at]}`]), levels);
  await plain.page.locator("label[for=level-all]").click();
  await plain.page.locator("#matrix td a").first().click();
  await plain.page.locator("details.run > summary").first().click();
  check("it reads without scripts", await plain.page.locator(".step.found pre mark").first().isVisible());
  await plain.context.close();
}

await finish(browser);
