/**
 * `npm run fuzz`: sends generated requests, valid and broken, to every operation of /openapi.json on a temporary Millrace, and
 * checks every answer against the description. Fails on a 5xx and on an answer that is not described. Needs schemathesis
 * (`pip install schemathesis`); says so and succeeds where it is not installed.
 *
 *     npm run fuzz -- --examples 100 --seed 7
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HERE = join(ROOT, "scripts/fuzz");
const READ_SCOPES = ["chain:read", "run:read", "kpi:read", "pipeline:read", "lineage:read"];

const { values } = parseArgs({
  options: {
    /** Generated requests for each operation, beside the fixed ones that cover its schema. */
    examples: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    /** `admin` or `read-only`: with this key alone. */
    key: { type: "string", default: "both" },
    /** Only operations whose path matches this regular expression. */
    path: { type: "string", default: "." },
  },
});

const installed = spawnSync("schemathesis", ["--version"], { encoding: "utf8" });
if (installed.status !== 0) {
  console.log("skipped: schemathesis is not installed (pip install schemathesis)");
  process.exit(0);
}

const folder = await mkdtemp(join(tmpdir(), "millrace-fuzz-"));
await chmod(folder, 0o711); // Started as root, Postgres runs as another user.
const adminKey = randomBytes(32).toString("base64url");
const server = spawn(process.execPath, ["--import", join(HERE, "loopback-only.js"), "dist/bin/millrace.js", "serve"], {
  cwd: ROOT,
  stdio: ["ignore", "ignore", "pipe"], // The log is written to stderr.
  env: {
    ...process.env,
    MILLRACE_PORT: "0",
    MILLRACE_DATA_DIR: folder,
    MILLRACE_ADMIN_KEY: adminKey,
    MILLRACE_RATE_LIMIT_PER_MINUTE: "0",
    MILLRACE_LOG_LEVEL: "info",
  },
});
let failures = 0;
try {
  const url = await readyUrl(server);
  if (values.key !== "read-only") failures += await fuzz("the admin key", url, adminKey);
  if (values.key !== "admin") failures += await fuzz("a key that may only read", url, await readOnlyKey(url));
} finally {
  server.kill("SIGTERM");
  await once(server, "exit");
  await rm(folder, { recursive: true, force: true });
}
process.exit(failures === 0 ? 0 : 1);

/** Also prints the log lines of errors, which name the cause of a 500. */
function readyUrl({ stderr }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    if (!stderr) throw new Error("the server's output is a pipe");
    const lines = createInterface({ input: stderr });
    lines.on("close", () => reject(new Error("the server ended before it was ready")));
    lines.on("line", (line) => {
      if (!line.startsWith("{")) return;
      const entry = JSON.parse(line) as { level: number | string; msg?: string; url?: string };
      if (entry.msg === "millrace is ready") resolve(String(entry.url));
      if (entry.level === "error" || Number(entry.level) >= 50) console.log(line);
    });
  });
}

async function readOnlyKey(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/v1/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "reader", scopes: READ_SCOPES }),
  });
  const { key } = (await answer.json()) as { key?: string };
  if (key === undefined) throw new Error(`no key was created: ${answer.status}`);
  return key;
}

async function fuzz(who: string, url: string, key: string): Promise<number> {
  console.log(`\n== with ${who}`);
  const args = [
    `--config-file=${join(HERE, "schemathesis.toml")}`,
    "run",
    `${url}/openapi.json`,
    `--max-examples=${values.examples}`,
    `--seed=${values.seed}`,
    `--include-path-regex=${values.path}`,
    `--header=Authorization: Bearer ${key}`,
    "--continue-on-failure",
    "--suppress-health-check=all",
    "--no-shrink",
  ];
  const child = spawn("schemathesis", args, {
    cwd: folder,
    stdio: "inherit",
    env: { ...process.env, SCHEMATHESIS_HOOKS: join(HERE, "hooks.py") },
  });
  const [status] = (await once(child, "exit")) as [number | null];
  return status === 0 ? 0 : 1;
}
