/** `millrace chain` against the real server, from a file to a run that is repaired. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { cliFor } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";

const server = useMillrace(useDatabase(), { env: { MILLRACE_ROLES: "api,scheduler,worker" } });
const chain = (...words: string[]) => cliFor(server)("chain", ...words);

const DAILY = `name: daily
nodes:
  - { id: extract, type: noop }
  - { id: load, type: sleep, cfg: { ms: "\${params.ms}" }, dependsOn: [extract] }
  - { id: publish, type: noop, dependsOn: [load] }
`;

async function fileWith(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-chain-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const path = join(folder, "daily.yaml");
  await writeFile(path, text);
  return path;
}

test("a chain is applied, fails, is shown, repaired by hand, and succeeds", async () => {
  const path = await fileWith(DAILY);
  expect(await chain("apply", path, "--dry-run")).toMatchObject({ exit: 0, stdout: "daily is valid: 3 nodes.\n" });
  expect((await chain("apply", path)).stdout).toBe("Created daily, version 1.\n");
  expect((await chain("apply", path)).stdout).toBe("daily is unchanged, version 1.\n");

  const failed = await chain("start", "daily", "--params", '{"ms":"soon"}', "--idempotency-key", "k", "--watch");
  expect(failed.exit).toBe(1);
  const [run = ""] = failed.stdout.split("\n");
  expect(failed.stdout).toMatch(/^load FAILED .*ms/m);
  expect(failed.stdout).toMatch(/^publish SKIPPED: a parent failed or was skipped$/m);
  expect(failed.stdout).toMatch(/^run \S+ of daily FAILED in \S+ \(1 success, 1 failed, 1 skipped\)/m);
  expect((await chain("start", "daily", "--params", '{"ms":"soon"}', "--idempotency-key", "k")).stdout).toBe(
    `${run}\n`,
  );

  expect((await chain("show", run)).stdout).toMatch(
    /\n✓ extract .*\n└─ ✗ load .*\n {3}└─ ⊘ publish +a parent failed or was skipped\n$/,
  );
  expect((await chain("runs", "daily", "--status", "failed")).stdout).toContain(run);
  expect((await chain("ls")).stdout).toMatch(/^daily +yes +1 +3 +\S+ +FAILED +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m);
  expect((await chain("logs", run)).exit).toBe(0);
  expect((await chain("retry", run, "--dry-run")).stdout).toMatch(
    /^load +FAILED +RETRYING\npublish +SKIPPED +PENDING$/m,
  );
  expect((await chain("retry", run, "extract")).exit).toBe(3);

  const completed = await chain("complete", run, "load", "--artifact", '{"rows":1}', "--reason", "by hand");
  expect((await chain("show", "daily")).stderr).toContain("`daily` is a chain, not a run");
  expect(completed.stdout).toBe(`load of run ${run}: SUCCESS.\n`);
  expect((await chain("watch", run)).exit).toBe(0);
});

test("a run is stopped and resumed", async () => {
  await chain("apply", await fileWith(DAILY.replace("daily", "long")));
  const { stdout } = await chain("start", "long", "--params", '{"ms":600000}', "--priority", "-1");
  const run = stdout.trim();
  expect(await chain("stop", run, "--wait")).toMatchObject({ exit: 0, stdout: `Run ${run}: STOPPED.\n` });
  expect((await chain("watch", run)).exit).toBe(8);
  expect((await chain("resume", run)).stdout).toBe(`Run ${run}: RUNNING.\n`);
  expect((await chain("stop", run, "--wait")).exit).toBe(0);
});

test("errors of a file are printed with their lines, and a missing chain is exit code 4", async () => {
  const path = await fileWith(DAILY.replace("[load]", "[laod]").replace("type: sleep", "type: slep"));
  expect(await chain("apply", path)).toEqual({
    exit: 2,
    stdout: "",
    stderr: `${path}:4:17: load, type: there is no node type \`slep\`. Did you mean \`sleep\`?
${path}:5:44: publish, dependsOn[0]: there is no node \`laod\`. Did you mean \`load\`?
`,
  });
  for (const words of [
    ["start", "nope"],
    ["watch", "nope"],
    ["show", "nope"],
    ["logs", "nope", "a"],
    ["stop", "nope"],
  ]) {
    expect(await chain(...words), words.join(" ")).toMatchObject({ exit: 4, stdout: "" });
  }
});
