/** What the listeners of a run's end receive. */
import { beforeEach, describe, expect, test } from "vitest";
import { ACTOR, arrival, kpiOf, useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import type { ModelFlow } from "./model-flow.ts";

const database = useDatabase();
const { acts, begun, define, ended, open } = useArrivalProcesses(database);
const DAY = "20250101";

const flows: ModelFlow[] = [];
beforeEach(() => void (flows.length = 0));
const onRunEnded = async (_tx: unknown, flow: ModelFlow) => void flows.push(flow);

describe("the end of a model's run", () => {
  test("reports what it read, what it stored, and what was computed from that", async () => {
    const process = await open({ onRunEnded });
    await define(process, "m", ["a", "b"], { produces: "out", description: "All of it" });
    await process.indicators.put(kpiOf("m"), { type: "EXTENDED", name: "Revenue" }, ACTOR);
    await process.indicators.put("C", { type: "COMPUTED", name: "Double", expression: 'kpi["m.K"] * 2' }, ACTOR);
    await process.announce(arrival("a", DAY));
    await process.announce(arrival("b", DAY));
    await ended("SUCCESS");
    expect(flows).toEqual([
      {
        runKey: expect.stringMatching(/^model m 20250101 1 \d+$/),
        modelId: "m",
        name: "m",
        description: "All of it",
        statement: { sql: "m", engine: "duckdb" },
        opTime: DAY,
        timeZone: "UTC",
        failure: null,
        inputs: ["a", "b"],
        produces: "out",
        kpis: [{ kpiId: "m.K", name: "Revenue" }],
        computed: [{ kpiId: "C", name: "Double", formula: 'kpi["m.K"] * 2', parts: ["m.K"] }],
      },
    ]);
  });

  test("reports the reason of a failure, with the indicators of the model", async () => {
    acts.set("m", () => Promise.reject(new Error("no such table")));
    const process = await open({ onRunEnded });
    await define(process, "m", ["a"]);
    await process.announce(arrival("a", DAY));
    await ended("FAILED");
    expect(flows).toMatchObject([{ failure: "no such table", kpis: [{ kpiId: "m.K" }], computed: [] }]);
  });

  test("is not reported for a run whose lease was lost, and is a failure for one that was lost too often", async () => {
    const held = signal<[]>();
    acts.set("m", () => held.promise);
    const victim = await open({ roles: ["worker"], onRunEnded });
    await define(victim, "m", ["a"]);
    await victim.announce(arrival("a", DAY));
    await until(() => begun.length === 1, "the run to begin");
    await victim.expireSession();
    const scheduler = await open({ roles: [], lostLimit: 1, onRunEnded });
    await scheduler.worker.reclaimer?.runOnce();
    expect(flows).toMatchObject([{ modelId: "m", failure: "processes lost in a row while they ran it: 1" }]);
    held.resolve([]);
    await until(
      () => victim.logged.some(({ message }) => message.includes("its result is dropped")),
      "its late result to be dropped",
    );
    expect(flows).toHaveLength(1);
  });
});
