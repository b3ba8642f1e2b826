// An agent of A2A 1.0 that does what it is told: it says back every message, as an artifact.
// Prints the port it listens on as one line.
import { randomUUID } from "node:crypto";
import express from "express";
import { TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler } from "@a2a-js/sdk/server/express";

const part = (text) => ({ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" });
const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });

const echo = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const text = userMessage.parts.map((item) => item.content?.value ?? "").join("");
    const base = { taskId, contextId, metadata: undefined };
    bus.publish(AgentEvent.task({
      id: taskId, contextId, status: status(TaskState.TASK_STATE_WORKING),
      artifacts: [], history: [userMessage], metadata: undefined,
    }));
    bus.publish(AgentEvent.artifactUpdate({
      ...base, append: false, lastChunk: true,
      artifact: {
        artifactId: randomUUID(), name: "answer", description: "",
        parts: [part(`I will: ${text}`)], metadata: undefined, extensions: [],
      },
    }));
    bus.publish(AgentEvent.statusUpdate({ ...base, status: status(TaskState.TASK_STATE_COMPLETED) }));
    bus.finished();
  },
  async cancelTask() {},
};

const app = express();
const server = app.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  const card = {
    name: "Echo", description: "Says back what it is told", version: "1.0.0",
    supportedInterfaces: [{ url: `http://127.0.0.1:${port}/`, protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: "" }],
    provider: undefined, capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
    skills: [{ id: "echo", name: "Echo", description: "Says it back", tags: ["echo"], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
    signatures: [],
  };
  const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), echo);
  app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: handler }));
  app.use("/", jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
  console.log(port);
});
