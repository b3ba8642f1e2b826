// Keeps a page of the dashboard up to date. The server says that there is something new; the page is fetched again, and those
// parts of it that differ take the place of the old ones. What somebody types, has opened or has focused stays.
"use strict";
{
  const main = document.querySelector("main[data-live]");
  const status = document.querySelector("#live");
  const fields = "input:not([type=hidden]), textarea, select";
  const isTyped = (field) =>
    field.matches("select")
      ? [...field.options].some((option) => option.selected !== option.defaultSelected) && field.selectedIndex > 0
      : field.value !== field.defaultValue;
  const isUsed = (part) =>
    [...part.querySelectorAll(fields)].some((field) => field === document.activeElement || isTyped(field));

  const replace = (part, next) => {
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && (focused.id ? `#${CSS.escape(focused.id)}` : null);
    const address = focused && focused.getAttribute("href");
    const opened = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
    const fresh = document.importNode(next, true);
    for (const id of opened) {
      const one = fresh.querySelector(`#${CSS.escape(id)}`);
      if (one) one.open = true;
    }
    part.replaceWith(fresh);
    const again = (place && fresh.querySelector(place)) ||
      (address && [...fresh.querySelectorAll("a")].find((one) => one.getAttribute("href") === address));
    if (again) again.focus({ preventScroll: true });
  };

  let busy = false;
  let again = false;
  const refresh = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const reply = await fetch(location.href, { credentials: "same-origin" });
      if (!reply.ok || reply.redirected) throw new Error(`status ${reply.status}`);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      let kept = false;
      for (const part of document.querySelectorAll("[data-part]")) {
        const next = page.querySelector(`[data-part="${part.dataset.part}"]`);
        if (!next || part.isEqualNode(next)) continue;
        if (isUsed(part)) kept = true;
        else replace(part, next);
      }
      const time = new Date().toLocaleTimeString();
      status.textContent = kept ? `Updated ${time}; what you are typing is kept` : `Updated ${time}`;
    } catch {
      status.textContent = "Cannot be updated; load the page again";
    } finally {
      busy = false;
    }
    if (again) {
      again = false;
      refresh();
    }
  };

  if (main && status) {
    const source = new EventSource(main.dataset.live);
    source.addEventListener("open", () => { status.textContent = "Live"; });
    source.addEventListener("changed", refresh);
    source.addEventListener("error", () => {
      status.textContent = source.readyState === EventSource.CLOSED
        ? "Not live; load the page again" : "Connecting again";
    });
  }
}
