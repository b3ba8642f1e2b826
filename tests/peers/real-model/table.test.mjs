// What `scripts/real-model` fails on, without a model: `node --test tests/peers/real-model/table.test.mjs`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { problems, rows } from "./table.mjs";

const run = (twin, rest) => ({
  id: `PROOF-001/model/1${twin ? "/twin" : ""}`, document: "PROOF-001", subject: "model", twin, verdict: "not_exploited", milliseconds: 7, ...rest,
});
const campaign = (attack, control, rest) => ({
  complete: true,
  subjects: [{ name: "model" }],
  documents: [{ id: "PROOF-001", path: "library/weather-key-theft.yaml" }],
  runs: [attack && run(false, attack), control && run(true, control)].filter(Boolean),
  ...rest,
});
const resisted = { outcome: "resisted" };
const skipped = { outcome: "inconclusive", reason: "control_failed" };

const CASES = [
  ["a campaign that is well", campaign(skipped, { ...resisted, task_done: true }), []],
  ["an unknown outcome", campaign({ outcome: "error" }, resisted), ["it has no outcome"]],
  ["no outcome", campaign({}, resisted), ["it has no outcome"]],
  ["no reason", campaign({ outcome: "inconclusive" }, resisted), ["without a reason"]],
  ["a reason too many", campaign({ outcome: "exploited", reason: "timed_out" }, resisted), ["has the reason"]],
  ["no verdict", campaign({ ...resisted, verdict: null }, resisted), ["without a verdict"]],
  ["a condition", campaign({ ...resisted, conditions: { alive: { held: false } } }, resisted), ["not all conditions hold"]],
  ["no control", campaign(skipped, null), ["there is no control"]],
  ["no attack", campaign(null, resisted), ["there is no attack"]],
  ["the end", campaign(skipped, resisted, { complete: false }), ["not every planned run"]],
];
for (const [name, result, expected] of CASES) {
  test(name, () => {
    const found = problems(result, "model", ["weather-key-theft"]);
    assert.equal(found.length, expected.length, found.join("\n"));
    expected.forEach((part, index) => assert.match(found[index], new RegExp(part)));
  });
}

test("the table has a row for each attack", () => {
  assert.deepEqual(rows(campaign(skipped, { ...resisted, task_done: true })), [
    ["document", "outcome", "reason", "control", "ms"],
    ["weather-key-theft", "inconclusive", "control_failed", "done", "7"],
  ]);
});
