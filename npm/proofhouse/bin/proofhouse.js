#!/usr/bin/env node
// Starts the binary of this platform with the same arguments.
import { spawn } from "node:child_process";
import process from "node:process";
import { binary } from "../lib/binary.js";

const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
// A terminal sends its signals to both; whoever else sends one means the binary.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`proofhouse: ${error.message}`);
  process.exitCode = 3;
});
child.on("exit", (code, signal) => {
  process.exitCode = code ?? (signal === "SIGINT" ? 130 : 3);
});
