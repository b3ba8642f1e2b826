// Talks to an agent over AG-UI with the official client, for `proofhouse agent serve`: `agent.mjs URL MESSAGE`.
// Two runs of one thread, one with a frontend tool, one that is interrupted where WRITE is given as a third word.
// It prints what it saw as one line of JSON.
import { HttpAgent } from '@ag-ui/client';

const [url, message, write] = process.argv.slice(2);
const seen = { runs: [] };
const agent = new HttpAgent({ url, threadId: 'thread-1' });

async function run(text, more = {}) {
  const types = [];
  const outcome = {};
  if (text) agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text });
  await agent.runAgent({ runId: crypto.randomUUID(), ...more }, {
    onEvent: ({ event }) => {
      types.push(event.type);
      if (event.type === 'RUN_FINISHED') Object.assign(outcome, event.outcome);
      if (event.type === 'RUN_ERROR') outcome.error = event.message;
    },
    onRunFailed: ({ error }) => {
      outcome.failed = String(error);
    },
  });
  seen.runs.push({ types, outcome, last: agent.messages.at(-1) });
  return outcome;
}

await run(message);
await run('Thank you.');
if (write) {
  const outcome = await run(write);
  await run(undefined, {
    resume: (outcome.interrupts ?? []).map(({ id }) => ({ interruptId: id, status: 'resolved', payload: { approved: true } })),
  });
}
const tools = [{
  name: 'show_banner', description: 'Shows a banner with a text.',
  parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
}];
const outcome = await run('Show a banner with the text "welcome".', { tools });
for (const id of outcome.pendingToolCallIds ?? []) {
  agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: id, content: 'shown' });
}
if (outcome.pendingToolCallIds) await run(undefined, { tools });
seen.messages = agent.messages.map(({ role }) => role);
console.log(JSON.stringify(seen));
