/** `millrace doctor`: with a healthy server, an unhealthy one, without a key and without a server. */
import { describe, expect, test } from "vitest";
import { cliFor, runCli } from "../../test/cli-in-process.ts";
import { useDatabase } from "../../test/database.ts";
import { useMillrace } from "../../test/millrace.ts";

const database = useDatabase();
const server = useMillrace(database);
const millrace = (...words: string[]) => cliFor(server)(...words);

interface Finding {
  check: string;
  verdict: string;
  found: string;
  advice?: string;
}
const findingsIn = (stdout: string) => (JSON.parse(stdout) as { findings: Finding[] }).findings;

describe("with a server", () => {
  test("shows its own findings and the server's, and exits with 0 even with warnings", async () => {
    const { exit, stdout, stderr } = await millrace("doctor");
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
    expect(stdout).toMatch(/^ok {7}client +This is Millrace \S+ on Node /);
    expect(stdout).toContain(`A server is ready at ${server.url}/.`);
    for (const check of ["database", "schema", "clock", "bloat", "chain state", "arrivals state", "webhook deliveries"])
      expect(stdout).toMatch(new RegExp(`^\\w+ +${check} `, "m"));
    // The Postgres of the tests runs without fsync, which is a warning; the advice is below the finding.
    expect(stdout).toMatch(/^warning {2}database .*fsync off.*\n {9,}Turn fsync/m);
  });

  test("exits with 1 when something is broken", async () => {
    await database.query("insert into kernel.schema_migration (version, name, checksum) values (999999, 'x', 'x')");
    const { exit, stdout } = await millrace("doctor", "--json");
    await database.query("delete from kernel.schema_migration where version = 999999");
    expect(exit).toBe(1);
    expect(findingsIn(stdout)).toContainEqual({
      check: "schema",
      verdict: "broken",
      found: expect.stringContaining("version 999999"),
      advice: expect.stringContaining("millrace migrate"),
    });
  });
});

test("without a key it shows what it can and says how to get one, with exit code 5", async () => {
  const { exit, stdout } = await runCli(["doctor"], { MILLRACE_URL: server.url });
  expect(exit).toBe(5);
  expect(stdout).toMatch(/^ok +client /m);
  expect(stdout).toMatch(/^ok +server /m);
  expect(stdout).toMatch(
    /^broken +key +This call needs a key\..*Set MILLRACE_KEY: the server's first start printed a key/m,
  );
});

test("without a server it says how to start one, with exit code 6", async () => {
  const { exit, stdout } = await runCli(["doctor", "--json", "--url", "http://127.0.0.1:9"]);
  expect(exit).toBe(6);
  expect(findingsIn(stdout)).toEqual([
    { check: "client", verdict: "ok", found: expect.stringContaining("Node") },
    { check: "server", verdict: "broken", found: expect.stringContaining("Start one with `millrace serve`") },
  ]);
});
