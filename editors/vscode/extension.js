// Starts `proofhouse lsp` for the files that are ours, and nothing else.
"use strict";
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("proofhouse");
  const run = { command: settings.get("path"), args: ["lsp"], transport: TransportKind.stdio };
  const documentSelector = settings.get("files").map((pattern) => ({ scheme: "file", language: "yaml", pattern }));
  client = new LanguageClient("proofhouse", "Proofhouse", { run, debug: run }, { documentSelector });
  await client.start();
}

async function restart() {
  await client?.stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("proofhouse.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("proofhouse") && restart()),
  );
  await start();
}

module.exports = { activate, deactivate: () => client?.stop() };
