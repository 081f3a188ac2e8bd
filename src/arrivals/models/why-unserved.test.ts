/** `why` says when a model waits because no process with the role that it needs is alive. */
import { beforeEach, expect, test } from "vitest";
import { useArrivalProcesses } from "../../../test/arrivals-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import type { ModelInput } from "./models.ts";
import { explain } from "./why.ts";

const database = useDatabase();
const { define, open } = useArrivalProcesses(database);
const OP_TIME = "20250101";
const verdict = async () => (await explain(database.db, systemClock, "m", OP_TIME)).verdict;

beforeEach(() => database.query("truncate kernel.session"));

test.each<[Partial<ModelInput>, readonly "worker"[], string]>([
  [{}, [], "It is ready; it waits for a process with the role `worker`: none is alive."],
  [
    { dependencies: [{ table: "a", quietSeconds: 3_600 }] },
    ["worker"],
    "All tables have arrived; it waits for a process with the role `scheduler`: none is alive.",
  ],
])("a model with %o while only %o is served", async (fields, roles, sentence) => {
  const process = await open({ roles });
  await define(process, "m", ["a"], fields);
  await process.announce({ table: "a", opTime: OP_TIME, idempotencyKey: null });
  expect(await verdict()).toBe(sentence);
  await database.query(
    `insert into kernel.session (process, roles, version, expires_at)
     values ('other:1', '{scheduler,worker}', '1', now() + interval '1 minute')`,
  );
  expect(await verdict()).not.toContain("none is alive");
});

test("one that runs or waits for tables needs none", async () => {
  const process = await open({ roles: [] });
  await define(process, "m", ["a", "b"]);
  await process.announce({ table: "a", opTime: OP_TIME, idempotencyKey: null });
  expect(await verdict()).toBe(`Waiting for a table: b ${OP_TIME}.`);
});
