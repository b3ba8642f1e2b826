// Opens the dashboard of a running server in a browser and checks what a person needs:
//   node dashboard.mjs URL PEERS BROWSER [SCREENSHOTS]
// The key is the first line of stdin; the server has tasks with turns, events with fates and a file with problems.
// Says `N passed, M failed`, and exits with 1 if anything failed.
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { check, finish, open as openIn, pale, start } from "./support.mjs";

const [url, peers, executablePath, screenshots] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin });
const key = (await lines[Symbol.asyncIterator]().next()).value;
lines.close();
const browser = await start(peers, executablePath);
const open = (options) => openIn(browser, url, options);
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
  const scripts = await page.locator("script").evaluateAll((all) => all.map((one) => one.getAttribute("src")));
  check("one script, of this server", scripts.length === 1 && scripts[0] === "/dashboard/live.js", scripts);
  const tones = await page.locator("tbody .badge").evaluateAll((all) => all.map((one) => `${one.className}: ${one.textContent}`));
  check("waiting and idle do not look alike", new Set(tones).size >= 2
    && tones.includes("badge tone-ask: ? needs approval") && tones.includes("badge tone-calm: ○ idle"), tones);
  const going = await page.locator("[data-part=progress]").innerText();
  check("whether work goes on is told", /Oldest waiting event/.test(going) && /Leases without a worker\s+0/.test(going), going);
  check("nothing is stuck", (await page.locator("[data-part=progress] [role=alert]").count()) === 0, going);
  const times = await page.locator("input[type=datetime-local]").evaluateAll((all) => all.map((one) => one.clientWidth));
  check("times are not cut", times.length === 2 && times.every((width) => width >= 205), times);
  const structure = async (name) => {
    const found = await page.evaluate(() => {
      const levels = [...document.querySelectorAll("h1,h2,h3,h4")].map((h) => Number(h.tagName[1]));
      return { skips: levels.filter((level, at) => at > 0 && level > levels[at - 1] + 1).length, first: levels[0],
        language: document.documentElement.lang, heads: document.querySelectorAll("table th:not([scope])").length };
    });
    check(`${name}: headings are in order, tables have heads`,
      found.skips === 0 && found.first === 1 && found.language === "en" && found.heads === 0, found);
    const current = await page.locator("nav [aria-current]").allTextContents();
    check(`${name}: its section is marked`, current.length === 1 && current[0].toLowerCase().startsWith(name.replace(/s$/, "")), current);
    check(`${name}: contrast`, (await page.evaluate(pale)).length === 0, await page.evaluate(pale));
    await shot(page, name);
  };
  await structure("tasks");
  await page.locator("tbody tr a").last().click();
  await page.getByRole("heading", { name: "Turns", exact: true }).waitFor();
  check("a task has turns", (await page.locator(".turns > li").count()) >= 2);
  check("what was said is text", (await page.getByText("<b>Good morning!</b>").count()) >= 1);
  check("an event became a turn", (await page.locator("main").innerText()).includes("ada commented on #7"));
  const kinds = await page.locator("table .kind").allTextContents();
  check("a timeline has what happened", ["input", "model", "answer", "wait"].every((kind) => kinds.includes(kind)), kinds);
  const tokens = await page.locator(".totals").innerText();
  check("tokens are told", /Tokens\s+\d+ in, \d+ out/.test(tokens), tokens);
  const words = await page.locator(".turn .badge").allTextContents();
  check("turns have plain names", ["input", "model", "answer"].every((word) => words.includes(word)) && !words.includes("llm"), words);
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

  await page.getByRole("link", { name: "Campaigns" }).click();
  check("campaigns are listed", (await page.locator("tbody tr").count()) === 1);
  await structure("campaigns");
  await page.getByRole("link", { name: "nightly@1" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  const campaign = await page.locator("main").innerText();
  check("a campaign tells its rates with intervals", /sim:careful[^]*\d+\.\d % \(\d+\.\d to \d+\.\d %, \d+ of \d+\)/.test(campaign), campaign);
  await structure("campaign");
  await page.getByRole("button", { name: "Run it again" }).click();
  await page.waitForURL(/nightly%402$/);
  await page.getByText("Live", { exact: true }).waitFor();
  const beside = await context.newPage();
  await beside.goto(page.url());
  await beside.getByRole("button", { name: "Cancel the campaign" }).click();
  await page.locator("[data-part=state] .badge", { hasText: "cancelled" }).waitFor();
  check("a page follows its campaign", true);
  await beside.goto(`${url}/dashboard/campaigns/nightly/trend`);
  check("a trend has a bar for each campaign with results", (await beside.locator("svg.bar").count()) >= 1);
  await beside.close();

  // With the keyboard alone.
  await page.goto(`${url}/dashboard`);
  await page.keyboard.press("Tab");
  const first = await focused(page);
  check("the first stop skips to the content, and is seen",
    first.href === "#main" && first.seen && first.outline !== "none", first);
  const stops = [];
  for (let at = 0; at < 40; at++) {
    await page.keyboard.press("Tab");
    stops.push(await focused(page));
  }
  const reached = stops.map((stop) => stop.href ?? stop.text);
  check("every place is a stop", ["/dashboard", "/dashboard/errors", "/dashboard/events", "/dashboard/manifests", "/dashboard/campaigns",
    "Sign out"]
    .every((place) => reached.includes(place)), reached);
  check("the search is a stop", stops.some((stop) => stop.tag === "SELECT") && reached.includes("Search"), reached);
  check("tasks are stops", reached.some((href) => href?.startsWith("/dashboard/tasks/")), reached);
  check("stops are seen", stops.every((stop) => stop.tag === "BODY" || (stop.seen && stop.outline !== "none")), stops);

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${url}/dashboard/sign-in`);
  await page.goto(`${url}/dashboard/events`);
  check("whoever has signed out is a stranger", page.url() === `${url}/dashboard/sign-in`, page.url());
  check("nothing to complain of", complaints.length === 0, complaints);
  await context.close();
}

// Searching, and what went wrong.
{
  const { context, page, complaints } = await open({ viewport: { width: 1280, height: 900 } });
  await signIn(page);
  const search = async (fields) => {
    await page.goto(`${url}/dashboard`);
    for (const [label, value] of Object.entries(fields)) {
      const field = page.getByLabel(label, { exact: true });
      if (label === "State") await field.selectOption({ label: value });
      else await field.fill(value);
    }
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForURL(/\?/);
    return page.locator("tbody tr").count();
  };
  check("all tasks", (await page.locator("tbody tr").count()) === 5);
  check("text of a turn", (await search({ Text: "GOOD morning" })) === 1);
  check("what was searched for stays in the form", (await page.getByLabel("Text").inputValue()) === "GOOD morning");
  check("text that nobody said", (await search({ Text: "zebra" })) === 0);
  check("state", (await search({ State: "needs approval" })) === 2);
  check("agent and namespace", (await search({ Agent: "porter", Namespace: "depot" })) === 2);
  check("another namespace", (await search({ Agent: "porter", Namespace: "shop" })) === 0);
  check("nothing is stuck", (await search({ State: "stuck" })) === 0);
  check("active before long ago", (await search({ "Active before (UTC)": "2001-01-01T00:00" })) === 0);
  check("active since long ago", (await search({ "Active since (UTC)": "2001-01-01T00:00", State: "idle" })) === 3);
  await shot(page, "search");
  check("nothing to complain of", complaints.length === 0, complaints);
  const wrong = await page.goto(`${url}/dashboard?since=yesterday`);
  check("a wrong time is told", wrong.status() === 400 && (await page.locator("main").innerText()).includes("since"));

  await page.goto(`${url}/dashboard`);
  await page.getByRole("link", { name: "Errors" }).click();
  const rows = await page.locator("tbody tr").evaluateAll((all) =>
    all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.innerText)));
  const [cause, times, tasks, agents] = rows[0] ?? [];
  check("errors are grouped by cause", rows.length === 1 && times === "2" && tasks === "2" && agents === "depot/porter"
    && /scale.*division by zero/.test(cause), rows);
  await shot(page, "errors");
  await page.locator("tbody a").first().click();
  check("an error leads to its turn", (await page.locator(".turn:target").count()) === 1, page.url());
  check("the timeline shows the problem", (await page.locator("table .tone-bad").count()) >= 1);
  await shot(page, "failed-task");
  await context.close();
}

// What people do: answer, say something, interrupt, cancel, replay. Another window sees it by itself.
{
  const { context, page, complaints } = await open({ viewport: { width: 1280, height: 900 } });
  await signIn(page);
  const list = await context.newPage();
  list.setDefaultTimeout(30_000);
  await list.goto(`${url}/dashboard?state=needs-approval`);
  await list.getByText("Live", { exact: true }).waitFor();
  await list.evaluate(() => { window.same = true; });
  const waiting = await list.locator("tbody a").evaluateAll((all) => all.map((one) => one.getAttribute("href")));
  check("two wait for an answer", waiting.length === 2, waiting);

  const answer = async (path, button, reason, said) => {
    await page.goto(url + path);
    check("the question says what is asked", (await page.locator(".review").innerText()).includes("till"));
    await shot(page, `question-${button}`);
    await page.locator(".review").getByLabel("Reason").fill(reason);
    await page.getByRole("button", { name: button }).click();
    // Without loading the page again: the answer, and what became of the task.
    await page.locator("[data-part=state] .badge", { hasText: "idle" }).waitFor().catch(async () =>
      check(`${button}: the task goes on`, false, await page.locator("body").innerText()));
    const timeline = await page.locator("[data-part=timeline]").innerText();
    check(`${button}: who and why`, timeline.includes(said) && timeline.includes(reason), timeline);
    check(`${button}: the question is gone`, (await page.locator(".review").count()) === 0);
  };
  await answer(waiting[0], "Approve", "the customer is right", "approved");
  const deliveries = page.locator("[data-part=deliveries]");
  await deliveries.getByText("obeyed").waitFor();
  check("an answer that was obeyed is not discarded", (await deliveries.getByText("discarded").count()) === 0);
  await shot(page, "approved");
  await list.locator("tbody tr").nth(1).waitFor({ state: "detached" });
  await answer(waiting[1], "Deny", "too often", "denied");
  await list.getByText("none.").waitFor();
  check("the list followed without being loaded again", await list.evaluate(() => window.same === true));

  // A message, which a window beside it sees while somebody types there.
  const beside = await context.newPage();
  beside.setDefaultTimeout(30_000);
  await beside.goto(url + waiting[0]);
  await beside.getByText("Live", { exact: true }).waitFor();
  await beside.getByLabel("Message").fill("half a sen");
  await page.goto(url + waiting[0]);
  await page.getByLabel("Message").fill("What is the weather\nlike?");
  await page.keyboard.press("Tab");
  check("the keyboard goes on to the button", (await focused(page)).text === "Send", await focused(page));
  await page.keyboard.press("Enter");
  await page.locator(".turn.input .said", { hasText: "What is the weather" }).waitFor();
  check("the message is a turn", true);
  await beside.locator(".turn.input .said", { hasText: "What is the weather" }).waitFor();
  check("what is typed stays", (await beside.getByLabel("Message").inputValue()) === "half a sen");
  check("the focus stays", (await focused(beside)).tag === "TEXTAREA", await focused(beside));
  const told = await beside.getByRole("status").innerText();
  check("a screen reader hears of it", told.startsWith("Updated"), told);
  await shot(beside, "beside");

  await page.getByText("Interrupt or cancel").click();
  await page.locator("#cancel-reason").fill("let me look");
  await page.getByRole("button", { name: "Interrupt" }).click();
  await page.getByRole("cell", { name: "let me look" }).waitFor();
  await page.locator("[data-part=state] .badge", { hasText: "interrupted" }).waitFor();
  check("interrupted", true);
  await page.getByText("Interrupt or cancel").click();
  await page.locator("#cancel-reason").fill("not needed");
  await page.getByRole("button", { name: "Cancel the task" }).click();
  await page.locator("[data-part=state] .badge", { hasText: "ended" }).waitFor();
  await page.getByRole("cell", { name: "not needed" }).waitFor();
  check("an ended task has nothing to be sent", (await page.getByLabel("Message").count()) === 0);
  await shot(page, "ended");

  await page.goto(`${url}/dashboard/events?outcome=discarded`);
  check("events that nobody got", (await page.locator("tbody tr").count()) === 1);
  await page.locator("tbody a").first().click();
  await page.getByLabel("Reason", { exact: true }).fill("sent too early");
  await page.getByRole("button", { name: "Replay the event" }).click();
  await page.getByText("routed 2 times").waitFor();
  check("the event is routed again", true);
  await shot(page, "replayed");
  check("nothing to complain of while working", complaints.length === 0, complaints);
  await context.close();
}

// In the dark, and in a narrow window without scripts.
const file = (place) => (place.startsWith("/tasks/") ? "-task" : place.replaceAll("/", "-").replace("@", "-"));
{
  const { context, page, complaints } = await open({ colorScheme: "dark", viewport: { width: 1280, height: 900 } });
  await signIn(page);
  const task = await page.locator("tbody a").first().getAttribute("href");
  const places = ["", "/errors", "/events", "/manifests", "/campaigns", "/campaigns/nightly@1", "/campaigns/nightly/trend",
    task.replace("/dashboard", "")];
  for (const place of places) {
    await page.goto(`${url}/dashboard${place}`);
    const bad = await page.evaluate(pale);
    check(`dark ${place}: contrast`, bad.length === 0, bad);
    const said = await page.locator("main").innerText();
    check(`${place}: times are for people`, !/\d{4}-\d\d-\d\dT\d/.test(said), said.match(/.*\d{4}-\d\d-\d\dT\d.*/g));
    await shot(page, `dark${file(place)}`);
  }
  check("dark: nothing to complain of", complaints.length === 0, complaints);
  await context.close();

  const narrow = await open({ viewport: { width: 390, height: 844 }, javaScriptEnabled: false });
  await signIn(narrow.page);
  for (const place of places) {
    await narrow.page.goto(`${url}/dashboard${place}`);
    const width = await narrow.page.locator("html").evaluate((root) => root.scrollWidth);
    check(`narrow ${place}: no scrolling sideways`, width > 0 && width <= 390, { width });
    await shot(narrow.page, `narrow${file(place)}`);
  }
  await narrow.page.goto(`${url}/dashboard`);
  const first = await narrow.page.locator("tbody a").first().boundingBox();
  check("narrow: the first task is on the first screen", first.y < 844, first);
  // Without scripts: what is said is said, and the page can be loaded again by itself.
  await narrow.page.goto(`${url}/dashboard?text=Good+morning`);
  await narrow.page.locator("tbody a").first().click();
  await narrow.page.getByLabel("Message").fill("Without a script");
  await narrow.page.getByRole("button", { name: "Send" }).click();
  await narrow.page.getByRole("cell", { name: "message" }).first().waitFor();
  await narrow.page.getByRole("link", { name: "Every 15 seconds" }).click();
  const every = await narrow.page.locator("meta[http-equiv=refresh]").getAttribute("content");
  check("without scripts the page loads itself again", every === "15", every);
  await narrow.page.goto(narrow.page.url().split("?")[0]);
  check("without scripts a message is kept", (await narrow.page.locator("main").innerText()).includes("Without a script")
    || (await narrow.page.getByRole("cell", { name: "pending" }).count()) > 0);
  await narrow.context.close();
}

await finish(browser);
