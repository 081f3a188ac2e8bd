import { afterEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { ApiError, kernelError, OperatorError } from "../../kernel/errors.ts";
import { systemIds } from "../../kernel/ids.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { recordingIngest } from "../ingest/recording-ingest.fixture.ts";
import type { FileFlow } from "./file-events.ts";
import { AT, dialectOf, modelFlow, runFlow } from "./flows.fixture.ts";
import { modelEvents } from "./model-events.ts";
import { openOwnLineage } from "./own-lineage.ts";

const database = useDatabase();
const NEVER = new AbortController().signal;
const EXISTS = { id: 1, code: "ours", name: "Ours" };

function open(settings = EXISTS) {
  const ingest = recordingIngest(() => Promise.reject(new Error("nobody asks for this")));
  const engines = { names: () => [], get: () => Promise.reject(new Error("there are no engines")) as never };
  const deps = { db: database.db, clock: systemClock, ids: systemIds, lineage: { ingest }, engines };
  return openOwnLineage(settings, deps).then((own) => {
    if (!own) throw new Error("there is no tenant for it");
    return { ...own, ingest };
  });
}
const tenants = () => database.query("select id::int as id, code, name, state from lineage.tenant order by id");

describe("the tenant in the settings", () => {
  test("is made, ready for events, and found again by the next start", async () => {
    await open();
    await open();
    expect(await tenants()).toEqual([{ ...EXISTS, state: "READY" }]);
  });

  test("is taken as it is if it was there before", async () => {
    await open();
    const { consumer, ofModel, ingest } = await open({ id: 1, code: "renamed", name: "Renamed" });
    const [event] = ofModel(modelFlow());
    if (event) await consumer.deliver(event, NEVER);
    expect(ingest.taken[0]?.tenant).toMatchObject({ id: "1", code: "ours", name: "Ours" });
  });

  test("cannot have the code of another", async () => {
    await open();
    const taken = open({ id: 2, code: "ours", name: "Others" });
    await expect(taken).rejects.toThrow(OperatorError);
    await expect(taken).rejects.toThrow("lineage.own in the configuration wants the code `ours` for tenant 2");
  });
});

describe("the default tenant", () => {
  const DEFAULT = { id: 0, code: "millrace", name: "Millrace" };
  const forget = () => database.query("delete from lineage.tenant");
  afterEach(forget);

  test("is made like any other", async () => {
    await forget();
    await open(DEFAULT);
    await open(DEFAULT);
    expect(await tenants()).toEqual([{ ...DEFAULT, state: "READY" }]);
  });

  test.each([
    ["id", { id: 0, code: "acme", name: "Acme" }],
    ["code", { id: 7, code: "millrace", name: "Acme" }],
  ])("is nobody else's: where others have its %s nothing is told", async (_, others) => {
    await forget();
    await database.query("insert into lineage.tenant (id, code, name, state) values ($1, $2, $3, 'READY')", [
      others.id,
      others.code,
      others.name,
    ]);
    await expect(open(DEFAULT)).rejects.toThrow("there is no tenant for it");
    expect(await tenants()).toEqual([{ ...others, state: "READY" }]);
  });
});

describe("what is told of a run", () => {
  test("comes to the sink word for word, however often it is delivered", async () => {
    const { consumer, ofModel, ingest } = await open();
    const [event] = ofModel(modelFlow());
    const { bodies } = JSON.parse(JSON.stringify(event?.payload)) as { bodies: string[] };
    for (let time = 0; time < 2; time += 1)
      await consumer.deliver({ eventId: "", topic: "", payload: { bodies } }, NEVER);
    expect(ingest.taken.map(({ body }) => body)).toEqual([...bodies, ...bodies]);
    expect(ingest.taken[0]).toMatchObject({ source: "COMPUTE_ENGINE", baseline: false });
  });

  test("is delivered again if the sink had too much to do", async () => {
    const { consumer, ofRuns, ingest } = await open();
    const [event] = ofRuns([runFlow()]);
    ingest.becomes(() => {
      throw kernelError("OVERLOADED", { waiting: 1, seconds: 1 });
    });
    await expect(event && consumer.deliver(event, NEVER)).rejects.toThrow(ApiError);
  });

  test("leaves the sink room for others, however much it is", async () => {
    const { consumer, ingest } = await open();
    const gate = signal();
    let [now, most] = [0, 0];
    const take = ingest.take.bind(ingest);
    ingest.take = async (...input) => {
      now += 1;
      most = Math.max(most, now);
      await gate.promise;
      now -= 1;
      return take(...input);
    };
    const [body = ""] = modelEvents(modelFlow(), AT, dialectOf);
    const payload = { bodies: Array.from({ length: 250 }, () => body) };
    const delivered = consumer.deliver({ eventId: "", topic: "", payload }, NEVER);
    await until(() => now === 100, "a hundred events to be on their way");
    gate.resolve();
    await delivered;
    expect([most, ingest.taken.length]).toEqual([100, 250]);
  });
});

test("of files only what this process has not told is told, and not before it is committed", async () => {
  const { ofFiles } = await open();
  const file = { pattern: "a_(\\d+)", table: "A" };
  const eventsOf = (...files: FileFlow[]) => database.db.tx(async (tx) => ofFiles(tx, files));
  const failing = database.db.tx(async (tx) => {
    expect(ofFiles(tx, [file, file])).toHaveLength(1);
    throw new Error("not committed");
  });
  await expect(failing).rejects.toThrow("not committed");
  expect(await eventsOf(file)).toHaveLength(1);
  expect(await eventsOf(file)).toEqual([]);
  expect(await eventsOf({ ...file, table: "B" })).toHaveLength(1);
});
