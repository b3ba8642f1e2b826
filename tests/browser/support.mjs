// What the checks in a browser share: the browser, pages that tell what they complain about, and the count.
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

let passed = 0;
let failed = 0;

// check WHAT HOLDS [SEEN]: counts it, and says what did not hold.
export const check = (what, holds, seen = "") => {
  holds ? passed++ : failed++;
  if (!holds) console.log(`FAILED: ${what} ${typeof seen === "string" ? seen : JSON.stringify(seen)}`);
};

// start PEERS BROWSER: the browser, driven by the playwright of the peers.
export const start = (peers, executablePath) => {
  const { chromium } = createRequire(join(resolve(peers), "browser/package.json"))("playwright-core");
  return chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: 60_000 });
};

// open BROWSER ADDRESS OPTIONS: a page of its own, with everything it complains about and whatever it asks of others.
export const open = async (browser, address, options) => {
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
    const url = request.url();
    if (!url.startsWith(address) && !url.startsWith("data:,")) complaints.push(`request: ${url}`);
  });
  return { context, page, complaints };
};

// The texts whose contrast with what is behind them is below 4.5.
export const pale = () => {
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

// finish BROWSER: says `N passed, M failed`, and ends with 1 if anything failed.
export const finish = async (browser) => {
  await browser.close();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
};
