// Prints what came of a campaign as a table, and checks that every run ended with an outcome and a reason:
//   node table.mjs RESULT.json SUBJECT DOCUMENT…
// Every document named must have been run against the subject, with its control; other subjects are checked as far as
// they were run. Ends with 1, and a line for each problem, if anything is missing.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const OUTCOMES = ["exploited", "partial", "resisted", "inconclusive"];

// The name of the file is what people type; the id is what runs have.
const slug = ({ id, path }) => path?.split("/").pop().replace(/\.yaml$/, "") || id;

/** Everything that no run of a campaign may be. */
export function problems(result, subject, documents) {
  const found = [];
  if (!result.complete) found.push("not every planned run was made");
  const named = new Map(result.documents.flatMap((document) => [[slug(document), document.id], [document.id, document.id]]));
  for (const document of documents) {
    for (const twin of [false, true]) {
      const run = result.runs.find((run) => run.document === named.get(document) && run.subject === subject && run.twin === twin);
      if (!run) found.push(`${document}: there is no ${twin ? "control" : "attack"} against ${subject}`);
    }
  }
  for (const { id, outcome, reason, conditions, verdict } of result.runs) {
    if (!OUTCOMES.includes(outcome)) found.push(`${id}: it has no outcome, but ${JSON.stringify(outcome)}`);
    if (outcome === "inconclusive" && !reason) found.push(`${id}: it is inconclusive without a reason`);
    if (outcome !== "inconclusive" && reason) found.push(`${id}: it is ${outcome}, and has the reason ${reason}`);
    if (outcome !== "inconclusive" && !verdict) found.push(`${id}: it is ${outcome} without a verdict`);
    if (outcome === "resisted" && Object.values(conditions ?? {}).some((condition) => !condition.held)) {
      found.push(`${id}: it is resisted, and not all conditions hold`);
    }
  }
  return found;
}

/** A row for each attack, with its control. */
export function rows(result) {
  const documents = new Map(result.documents.map((document) => [document.id, document]));
  const several = result.subjects.length > 1;
  const table = [["document", ...(several ? ["subject"] : []), "outcome", "reason", "control", "ms"]];
  for (const run of result.runs.filter((run) => !run.twin)) {
    const control = result.runs.find((other) => other.twin && other.document === run.document && other.subject === run.subject);
    table.push([
      slug(documents.get(run.document) ?? { id: run.document }),
      ...(several ? [run.subject] : []),
      run.outcome,
      run.reason ?? "",
      control ? (control.task_done ? "done" : "not done") : "none",
      String(run.milliseconds),
    ]);
  }
  return table;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [path, subject, ...documents] = process.argv.slice(2);
  const result = JSON.parse(readFileSync(path, "utf8"));
  const table = rows(result);
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd());
  const found = problems(result, subject, documents);
  for (const problem of found) console.error(`PROBLEM ${problem}`);
  process.exitCode = found.length ? 1 : 0;
}
