// A client of A2A 1.0: reads the card at URL, sends TEXT twice (whole and streamed), gets the task.
// Prints what it saw as one line of JSON.
import { randomUUID } from "node:crypto";
import { Role, TaskState } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";

const [url, text] = process.argv.slice(2);

const request = () => ({
  tenant: "",
  message: {
    messageId: randomUUID(),
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: undefined,
  metadata: undefined,
});
const texts = (parts) => parts.map((part) => part.content?.value ?? "").join("");

const seen = {};
const client = await new ClientFactory().createFromUrl(url);
const card = await client.getAgentCard();
seen.card = card.name;
seen.skill = card.skills[0].description;
const task = await client.sendMessage(request());
seen.send = [...task.artifacts.map((artifact) => texts(artifact.parts)), texts(task.status.message.parts)];
const again = await client.getTask({ tenant: "", id: task.id, historyLength: undefined });
seen.get = TaskState[again.status.state];
seen.stream = [];
for await (const item of client.sendMessageStream(request())) {
  seen.stream.push(item.payload.$case);
}
console.log(JSON.stringify(seen));
