// TypeScript and JavaScript on a page that is no such program:
//   node script_syntax.mjs PAGE…
import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";

if (!stripTypeScriptTypes) {
  console.log("TOO OLD");
  process.exit(0);
}
const block = /^( *)```(?:ts|js)\n(.*?)^\1```/gms;
for (const page of process.argv.slice(2)) {
  const text = readFileSync(page, "utf8");
  for (const { index, 2: program } of text.matchAll(block)) {
    try {
      stripTypeScriptTypes(program);
    } catch (error) {
      const line = text.slice(0, index).split("\n").length;
      console.log(`${page}:${line}: this program cannot be parsed: ${error.message}`);
    }
  }
}
