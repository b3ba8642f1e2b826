// The driver with a stand-in for `proofhouse drive`: what it cannot read, and runs that are given up.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import test from "node:test";
import { AttackFailed, Driver, define } from "./node_modules/proofhouse/lib/driver.js";

// Asks each agent once. What it was sent is the report of the run of the document `report`.
const STAND_IN = `#!${process.execPath}
const seen = [];
const say = (event) => console.log(JSON.stringify(event));
const one = { id: "X-001", slug: "x", name: "x", description: "", category: null, severity: null, has_control: false };
say({ event: "ready", protocol: 1 });
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, do: what, document } = JSON.parse(line);
  seen.push(what + " " + (document ?? id));
  if (what === "select") say({ id, event: "documents", documents: [one] });
  else if (document === "garbage") console.log("not { JSON");
  else if (document === "report") {
    const nothing = { runs: [], probes: [], outcome: "", asr: null, summary: "", control: { state: "absent", why: "" } };
    say({ id, event: "result", kind: "attack", passed: true, report: seen.join(", "), document: one, ...nothing });
  } else if (what === "run") say({ id, event: "prompt", call: 1, run: "r", prompt: "p", mcp_urls: [], a2a_urls: [], turn: 1 });
});
`;

const directory = mkdtempSync(path.join(tmpdir(), "proofhouse-"));
const program = path.join(directory, "drive");
writeFileSync(program, STAND_IN);
chmodSync(program, 0o755);
test.after(() => rmSync(directory, { recursive: true }));
const never = () => new Promise(() => {});

test("a line that is no JSON ends the session with an error", async () => {
  const driver = new Driver(program);
  await assert.rejects(driver.run("garbage", never), { code: "protocol", message: /not { JSON/ });
  await assert.rejects(driver.run("report", never), { code: "gone" });
});

test("a run that is given up is cancelled, and the session goes on", async () => {
  const driver = new Driver(program);
  const stop = new AbortController();
  const asked = driver.run("slow", () => (stop.abort(), never()), { signal: stop.signal });
  await assert.rejects(asked, { code: "cancelled" });
  const { report } = await driver.run("report", never);
  assert.equal(report, "run slow, cancel 1, run report");
  await assert.rejects(driver.run("slow", never, { signal: stop.signal }), { code: "cancelled" });
  driver.close();
});

test("a test that takes too long cancels its run", async () => {
  process.env.PROOFHOUSE_BINARY = program;
  const bodies = [];
  define((name, timeout, body) => bodies.push(body), "x", { timeout: 1 }, never);
  assert.equal(bodies.length, 1);
  await assert.rejects(bodies[0](), (error) => error.code === "cancelled" && !(error instanceof AttackFailed));
});
