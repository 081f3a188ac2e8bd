/** `millrace keys` against a running server. */
import { describe, expect, test } from "vitest";
import { cliFor, runCli } from "../../test/cli-in-process.ts";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";

const server = useMillrace(useDatabase());
const millrace = (...words: string[]) => cliFor(server)("keys", ...words);

async function newKey(name: string, ...words: string[]): Promise<{ id: string; key: string }> {
  const { stdout } = await millrace("create", name, "--scopes", "pipeline:read", ...words, "--json");
  return JSON.parse(stdout) as { id: string; key: string };
}

describe("create", () => {
  test("shows the key once, and the key works within its scopes", async () => {
    const made = await millrace("create", "reader", "--scopes", "pipeline:read, lineage:read");
    expect(made).toMatchObject({ exit: 0, stderr: "" });
    expect(made.stdout).toContain("Scopes  pipeline:read, lineage:read\n");
    expect(made.stdout).toContain("it is shown only this once");
    const env = { MILLRACE_URL: server.url, MILLRACE_KEY: /mlr_\S+/.exec(made.stdout)?.[0] ?? "" };
    expect((await runCli(["pipeline", "ls"], env)).exit).toBe(0);
    const refused = await runCli(["pipeline", "register", "f", "--shards", "0"], env);
    expect(refused.exit).toBe(5);
    expect(refused.stderr).toBe("This key may not do that: it lacks the scope pipeline:write. [FORBIDDEN]\n");
  });

  test("sends tenant, source and rate limit", async () => {
    const words = ["--tenant", "7", "--source", "COMPUTE_ENGINE", "--rate-limit", "60"];
    expect(await newKey("spark", ...words)).toMatchObject({
      name: "spark",
      key: expect.stringMatching(/^mlr_/),
      tenantId: 7,
      source: "COMPUTE_ENGINE",
      rateLimitPerMinute: 60,
    });
  });

  test("refuses an unknown scope without a call", async () => {
    const env = { MILLRACE_URL: "http://127.0.0.1:9" };
    const near = await runCli(["keys", "create", "x", "--scopes", "pipeline:read,pipline:write"], env);
    expect(near).toMatchObject({
      exit: 2,
      stderr: "There is no scope `pipline:write`. Did you mean `pipeline:write`?\n",
    });
    const far = await runCli(["keys", "create", "x", "--scopes", "everything"], env);
    expect(far.stderr).toMatch(/^There is no scope `everything`\. Scopes are chain:read, /);
  });

  test("lets the server check the other fields", async () => {
    const { exit, stderr } = await millrace("create", "x", "--scopes", "admin", "--source", "SPARK");
    expect(exit).toBe(2);
    expect(stderr).toContain("`source` must be one of `GRAVITINO`, `COMPUTE_ENGINE`. [VALIDATION_FAILED]");
  });
});

test("list shows every key by name and hint, and no key", async () => {
  const { id, key } = await newKey("listed 加载");
  const { exit, stdout } = await millrace("list");
  expect(exit).toBe(0);
  const line = stdout.split("\n").find((text) => text.startsWith(id));
  expect(line).toContain(`listed 加载`);
  expect(line).toContain(`${key.slice(0, 8)}...`);
  expect(stdout).not.toContain(key);
  const { items } = JSON.parse((await millrace("list", "--json")).stdout) as { items: { id: string }[] };
  expect(items.map((item) => item.id)).toContain(id);
});

test("revoke ends a key at once; an unknown one is not found", async () => {
  const { id, key } = await newKey("leaver");
  const env = { MILLRACE_URL: server.url, MILLRACE_KEY: key };
  expect((await runCli(["pipeline", "ls"], env)).exit).toBe(0);
  expect(await millrace("revoke", id)).toEqual({ exit: 0, stdout: `Revoked leaver (${id}).\n`, stderr: "" });
  const { exit, stderr } = await runCli(["pipeline", "ls"], env);
  expect(exit).toBe(5);
  expect(stderr).toContain("This command sent the key in MILLRACE_KEY. [UNAUTHENTICATED]");

  const unknown = await millrace("revoke", "00000000-0000-7000-8000-000000000000");
  expect(unknown.exit).toBe(4);
  expect(unknown.stderr).toContain("[KEY_NOT_FOUND]");
  expect((await millrace("revoke", "leaver")).exit).toBe(2);
});
