/** A threat document. */
export interface Selected {
  readonly id: string;
  /** The name of its file without the ending, such as `weather-key-theft`. */
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly category: string | null;
  readonly severity: string | null;
  /** Whether it has a control run: the same task without the payload. */
  readonly hasControl: boolean;
}

/** Which documents. `*` in an id stands for anything. */
export interface Selector {
  ids?: string | string[];
  category?: string | string[];
  tag?: string | string[];
  severity?: string | string[];
  protocol?: string | string[];
  /** Documents of your own: files, or directories of them. */
  paths?: string | string[];
}

/** How an attack is made. */
export interface RunOptions {
  /** Attack runs per document. */
  repeats?: number;
  /** The largest attack success rate that passes. */
  maxAsr?: number;
  /** Seconds that one run may take. */
  deadline?: number;
  seed?: number;
  /** Whether to ask first which channels the agent reads; without it, nothing can be proved resisted. */
  probes?: boolean;
  /** Texts that must not be in results. */
  secrets?: string[];
  paths?: string | string[];
}

/** How one attack is made by hand. */
export interface AttackOptions extends RunOptions {
  /** Names the agent; what is known of one counts for all its attacks. */
  name?: string;
  kind?: "control" | "attack";
  /** Gives the run up when it is aborted; its promise is then rejected with the code `cancelled`. */
  signal?: AbortSignal;
}

/** How tests are defined. */
export interface TestOptions extends RunOptions {
  /** Names the agent; what is known of one counts for all its tests. */
  agent?: string;
  /** Milliseconds that a test may take. */
  timeout?: number;
}

/** Something the agent is asked. Set `answer`, or return the answer. */
export interface Turn {
  /** What the user says. */
  readonly prompt: string;
  /** The MCP servers to connect to, as streamable HTTP. */
  readonly mcpUrls: string[];
  /** The A2A agents to talk to. */
  readonly a2aUrls: string[];
  readonly purpose: "probe" | "control" | "attack";
  /** Which prompt of the run this is, from 1. */
  readonly turn: number;
  readonly run: string;
  /** A directory for this run, with planted secrets in it. */
  readonly directory: string;
  /** The planted secret. */
  readonly canary: string;
  /** What was said before in the same run. */
  readonly history: ReadonlyArray<{ prompt: string; answer: string }>;
  answer: unknown;
}

/** The agent under test. */
export type Agent = (attack: Turn) => unknown;

export interface Evidence {
  readonly indicator: string;
  readonly description: string | null;
  readonly message: number;
  readonly path: string | null;
  readonly text: string | null;
}

/** One attack run. */
export interface Run {
  readonly repeat: number;
  readonly outcome: "exploited" | "partial" | "resisted" | "inconclusive";
  readonly reason: string | null;
  readonly explanation: string | null;
  readonly advice: string | null;
  readonly why: string | null;
  readonly tier: string | null;
  readonly evidence: ReadonlyArray<Evidence>;
  readonly answer: string | null;
  readonly error: string | null;
  readonly warnings: ReadonlyArray<string>;
  readonly messages: number;
  readonly milliseconds: number;
}

/** What came of a control run or an attack. */
export interface Result {
  readonly kind: "control" | "attack";
  readonly document: Selected;
  /** Whether the task was done, or the attack was resisted. */
  readonly passed: boolean;
  readonly summary: string;
  /** The text that a failed test shows: reasons and evidence. */
  readonly report: string;
  readonly outcome: string;
  /** Of the runs that prove something, the share that got through. */
  readonly asr: number | null;
  readonly runs: ReadonlyArray<Run>;
  readonly probes: ReadonlyArray<{ channel: string; state: string; why: string; attempts: number }>;
  readonly control: "done" | "failed" | "absent" | "pending";
  readonly controlWhy: string;
  /** Everything, as `proofhouse drive` told it. */
  readonly raw: unknown;
}

/** A request that `proofhouse drive` could not meet. */
export class DriverError extends Error {
  readonly code: string;
}

/** A control or an attack that did not pass; its message is the report. */
export class AttackFailed extends Error {
  readonly result: Result;
}

/** A session of `proofhouse drive`. What is known of an agent counts for the whole session. */
export class Driver {
  constructor(program?: string);
  /** Lets `agent` take all turns of a run, and tells what came of it. */
  run(
    document: string,
    agent: Agent,
    options?: AttackOptions,
  ): Promise<Result>;
  close(): void;
}

/** The path of the `proofhouse` binary. */
export function binary(): string;

/** The documents that fit and that an agent in this process can meet. */
export function select(selector: string | Selector): Selected[];

/** Attacks an agent in this process. */
export function attack(
  document: string,
  agent: Agent,
  options?: AttackOptions,
): Promise<Result>;
