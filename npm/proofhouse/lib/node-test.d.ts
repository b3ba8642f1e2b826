import type { Agent, Selector, TestOptions } from "./index.js";

/** Defines a test [control] and a test [attack] for each document of a selection. */
export function proofhouse(selector: string | (Selector & TestOptions), agent: Agent): void;
export function proofhouse(selector: string | Selector, options: TestOptions, agent: Agent): void;
