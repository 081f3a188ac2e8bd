/** Runs and nodes that wait because no process with the role `worker` or `scheduler` is alive: they say so, and the doctor too. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ChainProcess, held, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { until } from "../../../test/until.ts";
import { chainsChecks } from "../doctor.ts";
import { nodeReply, runReply } from "./view.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { acts, define, look } = chains;
const BY = { by: "test" };

beforeEach(() => database.query("truncate kernel.session"));
afterEach(() => database.query("truncate kernel.session"));

const reasonOf = async ({ reads }: ChainProcess, runId: string) => runReply(await reads.get(runId)).reason;
const waitOf = async ({ reads }: ChainProcess, runId: string, nodeId: string) => {
  const row = await reads.node(runId, nodeId);
  return nodeReply(row, row.def).waitingFor;
};
const doctor = () => chainsChecks.find(({ name }) => name === "chain processes")?.look(database.db);
const NO_WORKER = "a process with the role `worker`: none is alive";
const NO_SCHEDULER = "a process with the role `scheduler`: none is alive";

test("a node that is ready, and its run, wait for a worker", async () => {
  const process = await chains.open({ roles: ["scheduler"] });
  const { runId } = await process.runs.start(await define(process, [{ id: "a" }, { id: "b", dependsOn: ["a"] }]), BY);
  expect(await waitOf(process, runId, "a")).toBe(NO_WORKER);
  expect(await waitOf(process, runId, "b")).toBe("1 parent to end");
  expect(await reasonOf(process, runId)).toBe(`waits for ${NO_WORKER}`);
  const whole = {
    chainId: null,
    status: null,
    opTime: null,
    from: null,
    to: null,
    q: "",
    id: null,
    ids: null,
    parentRunId: null,
    jobId: null,
  };
  const { items } = await process.reads.list(
    {
      ...whole,
      trigger: null,
      triggeredBy: null,
      missingTable: null,
      fullPool: null,
      slot: null,
      retry: null,
      after: null,
    },
    { size: 10, offset: 0 },
  );
  expect(items.map((row) => runReply(row).reason)).toEqual([`waits for ${NO_WORKER}`]);
  expect(await doctor()).toMatchObject({
    verdict: "broken",
    found: `None is alive, and there are nodes that wait for a process with the role \`worker\`: 1, for example of run ${runId}.`,
    advice: "Start one: millrace serve --roles worker.",
  });
});

test("a run that is PENDING waits for a scheduler", async () => {
  const process = await chains.open({ roles: ["worker"] });
  const chainId = await define(process, [{ id: "a" }], { maxActiveRuns: 1 });
  const { runId } = await process.runs.start(chainId, BY);
  expect(await reasonOf(process, runId)).toBe(`waits for ${NO_SCHEDULER}`);
  expect(await doctor()).toMatchObject({ verdict: "broken", found: expect.stringContaining("`scheduler`: 1") });
});

test("a node that is tried again waits for a scheduler", async () => {
  const process = await chains.open({ roles: ["worker"] });
  acts.set("a", () => Promise.reject(new Error("no")));
  const retry = { maxAttempts: 2, backoffMs: 60_000 };
  const { runId } = await process.runs.start(await define(process, [{ id: "a", retry }]), BY);
  await until(async () => (await look(runId)).nodes["a"]?.status === "RETRYING", "the first failure");
  expect(await waitOf(process, runId, "a")).toMatch(new RegExp(`^its next attempt, due at .*Z, and ${NO_SCHEDULER}$`));
  expect(await reasonOf(process, runId)).toBe(`waits for ${NO_SCHEDULER}`);
  expect(await doctor()).toMatchObject({ verdict: "broken", found: expect.stringContaining("`scheduler`: 1") });
});

test("a node whose worker is lost waits for another one, and for a scheduler that reclaims it", async () => {
  const process = await chains.open({ roles: ["worker"] });
  const { act, begun } = held({ ignoresAbort: true });
  acts.set("a", act);
  const { runId } = await process.runs.start(await define(process, [{ id: "a" }]), BY);
  await begun();
  expect(await waitOf(process, runId, "a")).toBeNull();
  expect(await reasonOf(process, runId)).toBeNull();
  await process.expireSession();
  expect(await waitOf(process, runId, "a")).toBe(`another worker, since its own is lost, and ${NO_SCHEDULER}`);
  expect(await reasonOf(process, runId)).toBe(`waits for ${NO_SCHEDULER}`);
  expect(await doctor()).toMatchObject({ verdict: "broken", found: expect.stringContaining("`scheduler`: 1") });
});

describe("while all roles are served", () => {
  test("nothing of that is said", async () => {
    const process = await chains.open({ roles: [] });
    await database.query(
      `insert into kernel.session (process, roles, version, expires_at)
       values ('other:1', '{scheduler}', '1', now() + interval '1 minute'),
              ('other:2', '{worker}', '1', now() + interval '1 minute')`,
    );
    const chainId = await define(process, [{ id: "a" }]);
    const { runId } = await process.runs.start(chainId, BY);
    expect(await waitOf(process, runId, "a")).toBe("a free worker");
    expect(await reasonOf(process, runId)).toBeNull();
    expect(await doctor()).toMatchObject({ verdict: "ok" });
  });
});
