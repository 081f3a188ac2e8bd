/** The log of a process: where it is written, its format, and that it contains no secrets. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import type { Json } from "../../../test/client.ts";

const LOG = new URL("../../../dist/kernel/telemetry/log.js", import.meta.url).href;

/** Runs a script with a `log` in its own process. */
async function run(script: string, level = "info"): Promise<{ stdout: string; stderr: string; lines: Json[] }> {
  const source = `import { createLog } from ${JSON.stringify(LOG)};
                  const log = createLog({ level: ${JSON.stringify(level)} });
                  ${script}`;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", source]);
  const lines = stderr.split("\n").filter((line) => line !== "");
  return { stdout, stderr, lines: lines.map((line) => JSON.parse(line) as Json) };
}

describe("a line", () => {
  test("is one JSON object on standard error, and the last one is not lost at exit", async () => {
    const { stdout, lines } = await run(`log.info({ n: 1 }, "first"); log.warn({ n: 2 }, "last\\nline");`);
    expect(stdout).toBe("");
    expect(lines).toMatchObject([
      { level: 30, msg: "first", n: 1, pid: expect.any(Number), time: expect.any(Number) },
      { level: 40, msg: "last\nline", n: 2 },
    ]);
    expect(lines[0]).not.toHaveProperty("hostname");
  });

  test("below the level is left out", async () => {
    const { lines } = await run(`log.info({}, "no"); log.error({}, "yes");`, "error");
    expect(lines.map(({ msg }) => msg)).toEqual(["yes"]);
  });
});

/** Fields with secrets in headers, rows, settings and the environment. */
const SECRET = `authorization cookie key password secret token accessToken apiKey adminKey secretKey databaseUrl
  connectionString DATABASE_URL MILLRACE_ADMIN_KEY MILLRACE_API_KEY MILLRACE_SECRET_KEY PGPASSWORD`.split(/\s+/);

test("secrets are redacted wherever a whole object is logged", async () => {
  const { stderr, lines } = await run(`
    const names = ${JSON.stringify(SECRET)};
    const secrets = Object.fromEntries(names.map((name) => [name, "hunter2"]));
    log.info({ ...secrets, name: "top" }, "a");
    log.info({ row: { ...secrets, name: "in a row" } }, "b");
    log.info({ req: { headers: { ...secrets, accept: "text/plain" } } }, "c");
    log.child({ part: "x" }).info({ webhook: { settings: secrets } }, "d");
  `);
  expect(stderr).not.toContain("hunter2");
  expect(lines).toMatchObject([
    { name: "top", key: "[redacted]" },
    { row: { name: "in a row", password: "[redacted]" } },
    { req: { headers: { accept: "text/plain", authorization: "[redacted]" } } },
    { part: "x", webhook: { settings: { secret: "[redacted]" } } },
  ]);
});

test("an error is logged with type, message, code, stack and cause, and no other property", async () => {
  const { stderr, lines } = await run(`
    const cause = Object.assign(new RangeError("too far"), { client: { statements: "hunter2" } });
    const error = Object.assign(new Error("it broke", { cause }), { code: "08006", client: { password: "hunter2" } });
    log.error({ err: error }, "a");
    log.error({ err: "only a text" }, "b");
  `);
  expect(stderr).not.toContain("hunter2");
  expect(lines[0]?.["err"]).toEqual({
    type: "Error",
    message: "it broke",
    code: "08006",
    stack: expect.stringContaining("it broke\n    at "),
    cause: { type: "RangeError", message: "too far", stack: expect.any(String) },
  });
  expect(lines[1]?.["err"]).toBe("only a text");
});
