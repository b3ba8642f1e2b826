// Attacks as tests of node's test runner.
import test from "node:test";
import { define } from "./driver.js";

/** Defines a test [control] and a test [attack] for each document of a selection. */
export function proofhouse(selector, optionsOrAgent, agent) {
  define((name, timeout, body) => test(name, { timeout }, body), selector, optionsOrAgent, agent);
}
