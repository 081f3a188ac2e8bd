/** `millrace secrets` against a running server. */
import { expect, test } from "vitest";
import { startScript } from "../../test/cli.ts";
import { cliFor, runCli } from "../../test/cli-in-process.ts";
import { useDatabase } from "../../test/database.ts";
import { ADMIN_KEY, useMillrace } from "../../test/millrace.ts";
import { startServer } from "../../test/server.ts";

const database = useDatabase();
const server = useMillrace(database, { env: { MILLRACE_SECRET_KEY: "2".repeat(64) } });
const millrace = (...words: string[]) => cliFor(server)("secrets", ...words);
const script = (text: string) => startScript(text, { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY }).ended;
/** Stores the value of the variable HERE. */
const set = (name: string, env: Record<string, string> = {}) =>
  runCli(["secrets", "set", name, "--env", "HERE"], { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY, ...env });

test("a value is read from standard input or from the environment, and is never shown", async () => {
  const piped = await script("printf 'open sesame\\n' | millrace secrets set SHOP_TOKEN");
  expect(piped).toEqual({
    exit: 0,
    stdout: "Stored. Write it into the cfg of a node as ${secrets.SHOP_TOKEN}.\n",
    stderr: "",
  });
  const again = await script("printf 'open sesame' | millrace secrets set SHOP_TOKEN");
  expect(again.stdout).toMatch(/^Replaced\. /);
  const fromEnvironment = await set("OTHER", { HERE: "open barley" });
  expect(fromEnvironment).toMatchObject({ exit: 0, stderr: "" });
  const { exit, stdout } = await millrace("list");
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^NAME +CREATED +SET +BY\nOTHER +2\S+ +2\S+ +MILLRACE_ADMIN_KEY\nSHOP_TOKEN /);
  expect(stdout).not.toMatch(/sesame|barley/);
});

test("a secret can be deleted, once", async () => {
  await set("OLD", { HERE: "old value" });
  expect(await millrace("delete", "OLD")).toMatchObject({ exit: 0, stdout: "Deleted OLD.\n" });
  expect(await millrace("delete", "OLD")).toMatchObject({
    exit: 4,
    stderr: "There is no secret `OLD`. [SECRET_NOT_FOUND]\n",
  });
});

test("a value that is missing, not text or too short is refused", async () => {
  expect(await set("EMPTY")).toMatchObject({
    exit: 2,
    stderr: "The environment has no HERE, or it is empty.\n",
  });
  expect(await script("millrace secrets set EMPTY < /dev/null")).toMatchObject({
    exit: 2,
    stderr: "Standard input has no value.\n",
  });
  expect(await script("millrace secrets set ENDLESS < /dev/zero")).toMatchObject({
    exit: 2,
    stderr: "Standard input is longer than a secret may be.\n",
  });
  expect(await script("printf 'caf\\351 latin' | millrace secrets set LATIN")).toMatchObject({
    exit: 2,
    stderr: "The value is not UTF-8. Encode binary data as base64.\n",
  });
  expect(await script("printf abc | millrace secrets set SHORT")).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining("`value` must not have fewer than 4 characters. [VALIDATION_FAILED]"),
  });
});

test("a server that starts with another key logs which secrets it cannot open", async () => {
  await set("SEALED", { HERE: "some value" });
  const env = { MILLRACE_SECRET_KEY: "3".repeat(64) };
  const other = await startServer({ database: { url: database.url }, env });
  expect(other.output()).toMatch(
    /"level":40.*secrets cannot be opened, such as `\w+`\. Start with the MILLRACE_SECRET_KEY/,
  );
  const { exit, stdout } = await cliFor(other)("doctor");
  expect(exit).toBe(1);
  expect(stdout).toMatch(/^broken +secrets /m);
});
