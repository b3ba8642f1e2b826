// Finds the binary of this platform, which is a package of its own.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";

const require = createRequire(import.meta.url);

/** The path of the `proofhouse` binary: PROOFHOUSE_BINARY, or the one of the package for this platform. */
export function binary() {
  if (process.env.PROOFHOUSE_BINARY) return process.env.PROOFHOUSE_BINARY;
  const name = `proofhouse-${process.platform}-${process.arch}`;
  const file = process.platform === "win32" ? "proofhouse.exe" : "proofhouse";
  try {
    const found = path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", file);
    if (existsSync(found)) return found;
  } catch {
    // Told below.
  }
  throw new Error(
    `proofhouse: the package ${name} is not installed. Install without --no-optional, or set PROOFHOUSE_BINARY.`,
  );
}
