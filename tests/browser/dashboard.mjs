// Opens the dashboard of a running server in a browser and checks what a person needs:
//   node dashboard.mjs URL PEERS BROWSER [SCREENSHOTS]
// The key is the first line of stdin; the server has tasks with turns, events with fates and a file with problems.
// Says `N passed, M failed`, and exits with 1 if anything failed.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";

const [url, peers, executablePath, screenshots] = process.argv.slice(2);
const { chromium } = createRequire(join(resolve(peers), "browser/package.json"))("playwright-core");
const lines = createInterface({ input: process.stdin });
const key = (await lines[Symbol.asyncIterator]().next()).value;
lines.close();

let passed = 0;
let failed = 0;
const check = (what, holds, seen = "") => {
  holds ? passed++ : failed++;
  if (!holds) console.log(`FAILED: ${what} ${typeof seen === "string" ? seen : JSON.stringify(seen)}`);
};

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: 60_000 });

// open OPTIONS: a page of its own, with everything it complains about and whatever it asks of others.
const open = async (options) => {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:,")) complaints.push(`request: ${request.url()}`);
  });
  return { context, page, complaints };
};
const shot = async (page, name) => {
  if (screenshots) await page.screenshot({ path: join(screenshots, `dashboard-${name}.png`), fullPage: true });
};
const focused = (page) => page.evaluate(() => {
  const at = document.activeElement;
  const box = at.getBoundingClientRect();
  return { tag: at.tagName, text: at.textContent, href: at.getAttribute("href"), seen: box.left >= 0 && box.width > 0,
    outline: getComputedStyle(at).outlineStyle };
});
const signIn = async (page) => {
  await page.goto(`${url}/dashboard`);
  await page.getByLabel("API key").fill(key);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${url}/dashboard`);
};

// The texts whose contrast with what is behind them is below 4.5.
const pale = () => {
  const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const bad = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility()) continue;
    const [a, b] = [light(numbers(getComputedStyle(element).color)), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) bad.add(`${element.className || element.tagName}: ${contrast.toFixed(2)}`);
  }
  return [...bad];
};

// Whoever has no key, or a wrong one, sees nothing.
{
  const { context, page, complaints } = await open({ viewport: { width: 1280, height: 900 } });
  await page.goto(`${url}/dashboard/manifests`);
  check("a stranger is asked to sign in", page.url() === `${url}/dashboard/sign-in`, page.url());
  check("the key is asked for at once", (await focused(page)).tag === "INPUT");
  await shot(page, "sign-in");
  check("nothing to complain of before", complaints.length === 0, complaints);
  await page.keyboard.type("phk_wrong");
  await page.keyboard.press("Enter");
  await page.getByText("This key is not known.").waitFor();
  check("a wrong key is told so", true);
  // The browser itself notes the 401, which is what a wrong key gets.
  check("nothing else to complain of", complaints.every((text) => text.includes("401")), complaints);
  await context.close();
}

// Tasks, a task, events, an event, manifests: by mouse, then by keyboard.
{
  const { context, page, complaints } = await open({ viewport: { width: 1280, height: 900 } });
  await signIn(page);
  check("tasks are listed", (await page.locator("tbody tr").count()) >= 1);
  check("no scripts", (await page.locator("script").count()) === 0);
  const structure = async (name) => {
    const found = await page.evaluate(() => {
      const levels = [...document.querySelectorAll("h1,h2,h3,h4")].map((h) => Number(h.tagName[1]));
      return { skips: levels.filter((level, at) => at > 0 && level > levels[at - 1] + 1).length, first: levels[0],
        language: document.documentElement.lang, heads: document.querySelectorAll("table th:not([scope])").length };
    });
    check(`${name}: headings are in order, tables have heads`,
      found.skips === 0 && found.first === 1 && found.language === "en" && found.heads === 0, found);
    check(`${name}: contrast`, (await page.evaluate(pale)).length === 0, await page.evaluate(pale));
    await shot(page, name);
  };
  await structure("tasks");
  await page.locator("tbody tr a").last().click();
  await page.getByRole("heading", { name: "Turns" }).waitFor();
  check("a task has turns", (await page.locator(".turns > li").count()) >= 2);
  check("what was said is text", (await page.getByText("<b>Good morning!</b>").count()) >= 1);
  check("an event became a turn", (await page.locator("main").innerText()).includes("ada commented on #7"));
  await structure("task");
  await page.getByRole("link", { name: "Events" }).click();
  check("events are listed", (await page.locator("tbody tr").count()) >= 2);
  await structure("events");
  await page.locator("tbody tr a").first().click();
  const text = await page.locator("main").innerText();
  check("an event tells its fate", /filter|discarded|delivered/.test(text), text);
  await structure("event");
  await page.getByRole("link", { name: "Manifests" }).click();
  const manifests = await page.locator("main").innerText();
  check("problems have their place", /broken\.yaml:\d+:\d+/.test(manifests), manifests);
  await structure("manifests");

  // With the keyboard alone.
  await page.goto(`${url}/dashboard`);
  await page.keyboard.press("Tab");
  const first = await focused(page);
  check("the first stop skips to the content, and is seen",
    first.href === "#main" && first.seen && first.outline !== "none", first);
  const stops = [];
  for (let at = 0; at < 12; at++) {
    await page.keyboard.press("Tab");
    stops.push(await focused(page));
  }
  const reached = stops.map((stop) => stop.href ?? stop.text);
  check("every place is a stop", ["/dashboard", "/dashboard/events", "/dashboard/manifests", "Sign out"]
    .every((place) => reached.includes(place)), reached);
  check("tasks are stops", reached.some((href) => href?.startsWith("/dashboard/tasks/")), reached);
  check("stops are seen", stops.every((stop) => stop.tag === "BODY" || (stop.seen && stop.outline !== "none")), stops);

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${url}/dashboard/sign-in`);
  await page.goto(`${url}/dashboard/events`);
  check("whoever has signed out is a stranger", page.url() === `${url}/dashboard/sign-in`, page.url());
  check("nothing to complain of", complaints.length === 0, complaints);
  await context.close();
}

// In the dark, and in a narrow window without scripts.
{
  const { context, page, complaints } = await open({ colorScheme: "dark", viewport: { width: 1280, height: 900 } });
  await signIn(page);
  for (const place of ["", "/events", "/manifests"]) {
    await page.goto(`${url}/dashboard${place}`);
    const bad = await page.evaluate(pale);
    check(`dark ${place}: contrast`, bad.length === 0, bad);
    await shot(page, `dark${place.replace("/", "-")}`);
  }
  check("dark: nothing to complain of", complaints.length === 0, complaints);
  await context.close();

  const narrow = await open({ viewport: { width: 375, height: 800 }, javaScriptEnabled: false });
  await signIn(narrow.page);
  for (const place of ["", "/events", "/manifests"]) {
    await narrow.page.goto(`${url}/dashboard${place}`);
    const width = await narrow.page.locator("html").evaluate((root) => root.scrollWidth).catch(() => 0);
    check(`narrow ${place}: no scrolling sideways`, width <= 375, { width });
    await shot(narrow.page, `narrow${place.replace("/", "-")}`);
  }
  await narrow.context.close();
}

await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
