/** `millrace harvest` against a real server and a simulated source: from a definition to records, with a gap that is filled. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { cliFor } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { startMillrace } from "../../../test/millrace.ts";
import { startCrossref } from "../../simulators/index.ts";

const CROSSREF = fileURLToPath(new URL("../../../sources/crossref.yaml", import.meta.url));
const lines = (text: string) => text.split("\n").filter((line) => line !== "");
/** Long closed, whenever the test runs. */
const DAYS = ["2025-03-01", "2025-03-02"];
const database = useDatabase();

async function setUp() {
  const simulator = await startCrossref({ unlimited: true, days: DAYS, recordsPerDay: 40 });
  onTestFinished(() => simulator.close());
  const lake = await mkdtemp(join(tmpdir(), "millrace-lake-"));
  onTestFinished(() => rm(lake, { recursive: true }));
  const server = await startMillrace(database, {
    env: {
      MILLRACE_ROLES: "api,scheduler,worker",
      MILLRACE_LAKE_DIR: lake,
      MILLRACE_HARVEST_ALLOW_PRIVATE: new URL(simulator.origin).host,
    },
  });
  onTestFinished(() => server.app.stop());
  const harvest = (...words: string[]) => cliFor(server)("harvest", ...words);
  expect(await harvest("apply", CROSSREF, "--base-url", simulator.baseUrl)).toMatchObject({ exit: 0 });
  return { simulator, harvest };
}

test("a window is planned, fails, is harvested by the command that the failure names, and is read", async () => {
  const { simulator, harvest } = await setUp();
  const window = ["--from", "2025-03-01", "--to", "2025-03-03"];
  const planned = await harvest("plan", "crossref", ...window);
  expect(lines(planned.stdout)[0]).toBe("crossref/works, HARVEST, 2025-03-01 to 2025-03-03: 2 slices, priority 100.");
  expect(lines(planned.stdout).at(-1)).toMatch(/^2 +2025-03-02 +2025-03-03 +2025-03-02 +2025-03-02 +2025-03-03$/);
  expect((await harvest("status")).stdout).toBe("There are no such plans.\n");

  simulator.faults.set({ "truncated-body": 1 });
  const failed = await harvest("run", "crossref", ...window);
  expect(failed.exit).toBe(1);
  expect(failed.stdout).toMatch(
    /^gap 2025-03-01 to 2025-03-02 FAILED, slice \d+: .* answered 200: the body is not well-formed/m,
  );
  const [, acceptPlan = "", slice = ""] =
    /`millrace harvest accept (\S+) (\d+) --reason TEXT`/.exec(failed.stdout) ?? [];
  expect((await harvest("accept", acceptPlan, slice, "--reason", "not needed")).stdout).toMatch(
    new RegExp(`^Slice ${slice}, 2025-03-01 to 2025-03-02, is FAILED and accepted by .+: not needed$`, "m"),
  );
  expect((await harvest("cursors")).stdout).toMatch(/ACCEPTED GAPS/);
  const [, advised = ""] = /`millrace harvest (run [^`]+)`/.exec(failed.stdout) ?? [];

  simulator.faults.clear();
  const run = await harvest(...advised.split(" "));
  expect(run.exit).toBe(0);
  expect(lines(run.stdout).slice(2)).toEqual([
    "expected 80, received 80: inserted 80, updated 0, unchanged 0, deleted 0, quarantined 0, missing 0, gaps 0",
    "landed crossref_works 20250301: 40 rows",
    "landed crossref_works 20250302: 40 rows",
  ]);

  const records = lines((await harvest("records", "--source", "crossref")).stdout).map(
    (line) => JSON.parse(line) as { key: string; data: { DOI: string } },
  );
  expect(new Set(records.map(({ key }) => key)).size).toBe(80);
  expect(records.every(({ key, data }) => key.toLowerCase() === data.DOI.toLowerCase())).toBe(true);
  const [one] = records;
  expect(JSON.parse((await harvest("records", "--source", "crossref", "--key", one?.key ?? "")).stdout)).toEqual(one);

  expect((await harvest("cursors")).stdout).toMatch(/^crossref .* deposited_at +2025-03-03 +\d{4}-\d\d-\d\d +\d+d /m);
  const [plan = ""] = /[\da-f-]{36}/.exec(run.stdout) ?? [];
  expect((await harvest("status", plan)).stdout).toContain("expected 80, received 80");
  expect(lines((await harvest("status", "--status", "failed")).stdout)).toHaveLength(2);
  expect((await harvest("tasks", "--plan", plan)).stdout.match(/SUCCEEDED/g)).toHaveLength(2);
});

test("a cursor is looked at and sent back, records are updated, and a task that is paused is explained, cancelled and resumed", async () => {
  const { harvest } = await setUp();
  const window = ["--from", "2025-03-01", "--to", "2025-03-03"];
  expect(await harvest("run", "crossref", ...window)).toMatchObject({ exit: 0 });
  const timeline = await harvest("cursors", "--source", "crossref", "--timeline");
  expect(timeline.stdout).toMatch(
    /^crossref\/works HARVEST, at 2025-03-03\n\S+ \+ advance {2}.* to 2025-03-03 \(plan \S+, slice \d+\)\n/,
  );
  const rewind = ["cursors", "rewind", "crossref", "--endpoint", "works", "--to", "2025-03-02", "--reason", "mended"];
  const refused = await harvest(...rewind, "--operation", "backfill");
  expect(refused).toMatchObject({
    exit: 2,
    stderr: expect.stringMatching(/^Only the cursor of HARVEST is sent back\./),
  });
  const moved = "from 2025-03-03 to 2025-03-02, generation 2; complete slices that are harvested once more:";
  expect((await harvest(...rewind, "--dry-run")).stdout).toContain(
    `The cursor of crossref/works would go back ${moved}`,
  );
  expect((await harvest(...rewind)).stdout).toContain(`The cursor of crossref/works went back ${moved}`);

  const [record = ""] = lines((await harvest("records", "--source", "crossref")).stdout);
  const { key } = JSON.parse(record) as { key: string };
  const updated = await harvest("run", "crossref", "--operation", "update", "--id", key);
  expect(updated).toMatchObject({ exit: 0, stdout: expect.stringContaining("expected 1, received 1") });
  const none = await harvest("run", "crossref", "--operation", "update", "--quarantined");
  expect(none).toMatchObject({ exit: 3, stderr: expect.stringContaining("No record is quarantined") });

  expect(await harvest("pause", "crossref", "--reason", "maintenance")).toMatchObject({ exit: 0 });
  const plan = (await harvest("run", "crossref", ...window, "--no-wait")).stdout.trim();
  const { items } = JSON.parse((await harvest("tasks", "--plan", plan, "--json")).stdout) as {
    items: { taskId: number; sliceId: number }[];
  };
  const [task] = items;
  expect((await harvest("why", plan, String(task?.sliceId))).stdout).toMatch(
    /^PAUSED: crossref is paused by .*: maintenance/m,
  );
  expect((await harvest("cancel", "--task", String(task?.taskId))).stdout).toMatch(
    new RegExp(`^Cancelled slice ${task?.sliceId}, 2025-03-0`),
  );
  expect(await harvest("cancel", plan, "--task", String(task?.taskId))).toMatchObject({ exit: 2 });
  expect(await harvest("resume", "crossref")).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(
      /^Resumed crossref, which was paused by .*: maintenance\nNothing of the source is paused any more\.\n$/,
    ) as string,
  });
});

test("mistakes are answered with what to do", async () => {
  const { harvest } = await setUp();
  const unknown = await harvest("run", "crosref");
  expect(unknown).toMatchObject({ exit: 4, stdout: "" });
  expect(unknown.stderr).toMatch(/^There is no source crosref\. Did you mean `crossref`\?/);
  const future = await harvest("run", "crossref", "--from", "2999-01-01", "--to", "2999-01-02");
  expect(future).toMatchObject({ exit: 3, stdout: "" });
  expect(future.stderr).toMatch(/^There is nothing to plan\. The window from .* can be closed at \S+Z, not before\./);
  expect((await harvest("run", "crossref", "--endpoint", "wroks")).exit).toBe(4);
  expect((await harvest("run", "crossref", "--last", "3 days")).exit).toBe(2);
  expect((await harvest("tasks", "--status", "waiting")).exit).toBe(2);
  expect((await harvest("schedules", "pause", "99")).exit).toBe(4);
  expect((await harvest("records", "--source", "crosref")).exit).toBe(4);
});
