// Drives attacks on an agent in this process, over the lines of `proofhouse drive`.
import { spawn, spawnSync } from "node:child_process";
import readline from "node:readline";
import { binary } from "./binary.js";

const PROTOCOL = 1;

/** A request that `proofhouse drive` could not meet; `code` tells programs why. */
export class DriverError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "DriverError";
    this.code = code;
  }
}

/** A control or an attack that did not pass; what it says is the report. */
export class AttackFailed extends Error {
  constructor(result, cause) {
    super(result.report, cause === undefined ? undefined : { cause });
    this.name = "AttackFailed";
    // Not shown with the error: the report says it all.
    Object.defineProperty(this, "result", { value: result, enumerable: false });
    // The evidence is what matters, not where it was thrown.
    this.stack = `AttackFailed: ${result.report}`;
  }
}

const list = (value) => (value === undefined ? [] : Array.isArray(value) ? value : [value]);

function selection(selector) {
  const { ids, category, tag, severity, protocol, paths } = typeof selector === "string" ? { ids: selector } : selector;
  return {
    ids: list(ids),
    categories: list(category),
    tags: list(tag),
    severities: list(severity),
    protocols: list(protocol),
    paths: list(paths),
  };
}

const document = ({ id, slug, name, description, category, severity, has_control }) => ({
  id,
  slug,
  name,
  description,
  category,
  severity,
  hasControl: has_control,
});

function result(event) {
  const { kind, passed, summary, report, outcome, asr, runs, probes } = event;
  return {
    kind,
    document: document(event.document),
    passed,
    summary,
    report,
    outcome,
    asr,
    runs,
    probes,
    control: event.control.state,
    controlWhy: event.control.why,
    raw: event,
  };
}

/** What a line of the process says; nothing when it is not what the process should write. */
function read(line) {
  try {
    return Object(JSON.parse(line));
  } catch {
    return undefined;
  }
}

const unreadable = (line) => `proofhouse drive wrote a line that is no JSON: ${line.slice(0, 200)}`;

function checked(event) {
  if (event.event === "error") throw new DriverError(event.code, event.message);
  return event;
}

/** The documents that fit and that an agent in this process can meet. Waits, so that tests can be defined from it. */
export function select(selector) {
  const input = `${JSON.stringify({ id: 1, do: "select", ...selection(selector) })}\n`;
  const done = spawnSync(binary(), ["drive"], { input, encoding: "utf8", maxBuffer: 64 << 20 });
  if (done.error) throw done.error;
  const lines = done.stdout.split("\n").filter(Boolean);
  const wrong = lines.find((line) => read(line) === undefined);
  if (wrong !== undefined) throw new DriverError("protocol", unreadable(wrong));
  const answer = lines.map(read).find((event) => event.id === 1);
  if (!answer) throw new DriverError("gone", `proofhouse drive ended without an answer: ${done.stderr}`);
  return checked(answer).documents.map(document);
}

/** A session of `proofhouse drive`. What is known of an agent counts for the whole session. */
export class Driver {
  #child;
  #open = new Map();
  #next = 0;
  #over = false;

  constructor(program = binary()) {
    this.#child = spawn(program, ["drive"], { stdio: ["pipe", "pipe", "inherit"] });
    const gone = (message, code = "gone") => {
      this.#over = true;
      for (const run of this.#open.values()) run.deliver({ event: "error", code, message });
    };
    this.#child.on("error", (error) => gone(`proofhouse drive cannot be started: ${error.message}`));
    this.#child.on("exit", () => gone("proofhouse drive ended"));
    this.#child.stdin.on("error", () => {});
    const lines = readline.createInterface({ input: this.#child.stdout, crlfDelay: Infinity });
    lines.on("line", (line) => {
      const event = read(line);
      if (event === undefined) {
        gone(unreadable(line), "protocol");
        this.close();
        return;
      }
      if (event.event === "ready" && event.protocol !== PROTOCOL) {
        gone(`the proofhouse binary speaks protocol ${event.protocol} instead of ${PROTOCOL}`);
        this.close();
      }
      this.#open.get(event.id)?.deliver(event);
    });
    this.#rest();
  }

  // Nobody has to close a driver: it keeps the process alive only while something is open.
  #rest() {
    for (const part of [this.#child, this.#child.stdin, this.#child.stdout]) part.unref?.();
  }

  #wake() {
    for (const part of [this.#child, this.#child.stdin, this.#child.stdout]) part.ref?.();
  }

  #send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Lets `agent` take all turns of a run, and tells what came of it. */
  async run(documentName, agent, options = {}) {
    if (this.#over) throw new DriverError("gone", "proofhouse drive ended");
    const { name = nameOf(agent), kind = "attack", repeats = 1, maxAsr = 0, paths, deadline, seed = 0, probes = true } = options;
    const { signal } = options;
    const id = ++this.#next;
    const waiting = [];
    let wake;
    const givenUp = () => new DriverError("cancelled", "the run was given up before it had a result");
    if (signal?.aborted) throw givenUp();
    let giveUp;
    const cancelled = new Promise((_, reject) => {
      giveUp = () => {
        this.#send({ id, do: "cancel" });
        reject(givenUp());
      };
    });
    // Whoever waits for it is told; nobody may.
    cancelled.catch(() => {});
    signal?.addEventListener("abort", giveUp, { once: true });
    this.#open.set(id, {
      deliver(event) {
        waiting.push(event);
        wake?.();
      },
    });
    this.#wake();
    try {
      this.#send({
        id,
        do: "run",
        agent: name,
        document: documentName,
        kind,
        repeats,
        max_asr: maxAsr,
        paths: list(paths),
        deadline: deadline ?? null,
        seed,
        probes,
        secrets: list(options.secrets),
      });
      const histories = new Map();
      for (;;) {
        if (waiting.length === 0) await Promise.race([cancelled, new Promise((resolve) => (wake = resolve))]);
        wake = undefined;
        const event = waiting.shift();
        if (event.event === "result") return result(event);
        if (event.event !== "prompt") {
          // An answer that came too late is no fault of the attack.
          if (event.code === "invalid_request" && histories.size > 0) continue;
          checked(event);
        }
        const history = histories.get(event.run) ?? [];
        histories.set(event.run, history);
        const turn = {
          prompt: event.prompt,
          mcpUrls: event.mcp_urls,
          a2aUrls: event.a2a_urls,
          purpose: event.purpose,
          turn: event.turn,
          run: event.run,
          directory: event.directory,
          canary: event.canary,
          history: [...history],
          answer: undefined,
        };
        const reply = { id, do: "answer", call: event.call };
        try {
          const returned = await Promise.race([cancelled, agent(turn)]);
          const answer = turn.answer ?? returned;
          if (answer === undefined || answer === null) {
            reply.error = "the test set no answer (attack.answer)";
          } else {
            reply.text = String(answer);
            history.push({ prompt: event.prompt, answer: reply.text });
          }
        } catch (error) {
          if (signal?.aborted) throw givenUp();
          // What an agent throws is its failure, and part of the result.
          reply.error = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
        }
        this.#send(reply);
      }
    } finally {
      signal?.removeEventListener("abort", giveUp);
      this.#open.delete(id);
      if (this.#open.size === 0) this.#rest();
    }
  }

  /** Ends the session. */
  close() {
    this.#child.stdin.end();
  }
}

// What is known of one function must not count for another.
const names = new WeakMap();

function nameOf(agent) {
  if (!names.has(agent)) names.set(agent, `agent-${++agents}`);
  return names.get(agent);
}

let shared;

/** The driver of this process, started when it is first needed. */
export function defaultDriver() {
  shared ??= new Driver();
  return shared;
}

/** Attacks an agent in this process: `agent` gets each turn and returns its answer, or sets `turn.answer`. */
export function attack(documentName, agent, options) {
  return defaultDriver().run(documentName, agent, options);
}

/** Defines the tests of a selection with the functions of a test runner. */
export function define(runner, selector, optionsOrAgent, maybeAgent) {
  const agent = maybeAgent ?? optionsOrAgent;
  const options = { ...(typeof selector === "string" ? {} : selector), ...(maybeAgent ? optionsOrAgent : {}) };
  if (typeof agent !== "function") throw new TypeError("proofhouse: the last argument is the agent, a function");
  const documents = select(typeof selector === "string" ? { ids: selector, paths: options.paths } : selector);
  if (documents.length === 0) throw new DriverError("no_such_document", "no document fits that an agent in this process can meet");
  const { timeout = 600_000 } = options;
  // What is known of an agent counts for all tests that are defined together.
  const name = options.agent ?? `agent-${++agents}`;
  for (const one of documents) {
    for (const kind of one.hasControl ? ["control", "attack"] : ["attack"]) {
      runner(`${one.slug || one.id} [${kind}]`, timeout, async () => {
        let cause;
        const watched = async (turn) => {
          try {
            return await agent(turn);
          } catch (error) {
            cause = error;
            throw error;
          }
        };
        // The runner gives up on the test at that time, and says so. The attack must not go on beside the next test.
        const signal = timeout > 0 && timeout < 2 ** 31 ? AbortSignal.timeout(timeout) : undefined;
        const made = await attack(one.id, watched, { ...options, name, kind, signal });
        if (!made.passed) throw new AttackFailed(made, cause);
      });
    }
  }
}

let agents = 0;
