// Talks to an agent over A2A 1.0 with the official client, for `proofhouse agent serve`: `agent.mjs URL MESSAGE`.
// It prints what it saw as one line of JSON.
import { randomUUID } from "node:crypto";
import { Role, TaskState } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";

const [url, text, write] = process.argv.slice(2);

const request = (said, ids = {}) => ({
  tenant: "",
  message: {
    messageId: randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text", value: said }, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...ids,
  },
  configuration: undefined,
  metadata: undefined,
});
const texts = (task) => task.artifacts.flatMap(({ parts }) => parts.map((part) => part.content?.value ?? ""));

const seen = {};
const client = await new ClientFactory().createFromUrl(url);
const card = await client.getAgentCard();
seen.card = [card.name, ...card.skills.map(({ id }) => id)];
const task = await client.sendMessage(request(text));
seen.send = [TaskState[task.status.state], ...texts(task)];
const again = await client.getTask({ tenant: "", id: task.id, historyLength: undefined });
seen.get = TaskState[again.status.state];
seen.stream = [];
for await (const item of client.sendMessageStream(request(text, { contextId: task.contextId }))) {
  seen.stream.push(item.payload.$case);
}
const waiting = await client.sendMessage(request(write));
const ids = { taskId: waiting.id, contextId: waiting.contextId };
const approved = await client.sendMessage(request("approve", ids));
seen.approval = [TaskState[waiting.status.state], TaskState[approved.status.state]];
seen.errors = [];
for (const call of [
  () => client.cancelTask({ tenant: "", id: task.id, metadata: undefined }),
  () => client.getTask({ tenant: "", id: "nobody's", historyLength: undefined }),
]) {
  try {
    await call();
  } catch (error) {
    seen.errors.push(error.constructor.name);
  }
}
console.log(JSON.stringify(seen));
