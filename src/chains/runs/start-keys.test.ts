/** Idempotency-Keys of starts: their deletion, and that a refused start stores none and is refused quickly. */
import { describe, expect, test } from "vitest";
import { ACTOR, useChainProcesses } from "../../../test/chain-process.ts";
import { useDatabase } from "../../../test/database.ts";

const database = useDatabase();
const chains = useChainProcesses(database);
const { define, ended } = chains;
const BY = { by: "test" };

const addKeys = (chainId: string, name: string, count: number, age: string) =>
  database.query(
    `insert into chains.start_key (chain_id, key, request, run_id, created_at)
     select $1, $2 || n, '', gen_random_uuid(), now() - $4::interval from generate_series(1, $3::int) n`,
    [chainId, name, count, age],
  );

describe("keys that are older than a day", () => {
  test("are deleted in batches until none is left, and no newer keys", async () => {
    const process = await chains.open({ roles: [] });
    const chainId = await define(process, [{ id: "n0" }]);
    await addKeys(chainId, "old ", 4_500, "25 hours");
    await addKeys(chainId, "young ", 10, "23 hours");
    const deleted: unknown[] = [];
    for (let round = 0; round < 4; round += 1) deleted.push((await process.timers.runOnce())["start_keys_deleted"]);
    expect(deleted).toEqual([2_000, 2_000, 500, 0]);
    const left = await database.query<{ key: string }>("select key from chains.start_key");
    expect(left).toHaveLength(10);
    expect(left.every(({ key }) => key.startsWith("young"))).toBe(true);
    expect(process.statements.filter((name) => name === "chains.start_key.delete_old")).toHaveLength(3);
  });
});

describe("a start that is refused", () => {
  test("is refused quickly, also with many at once, and its key stays free", async () => {
    const process = await chains.open();
    const nodes = [{ id: "n0" }];
    const chainId = await define(process, nodes, { enabled: false });
    const began = performance.now();
    const answers = await Promise.allSettled(
      Array.from({ length: 200 }, (_, index) => process.runs.start(chainId, { ...BY, idempotencyKey: `key ${index}` })),
    );
    expect(performance.now() - began).toBeLessThan(4_000);
    const refused = { status: "rejected", reason: { code: "CHAIN_DISABLED", status: 409 } };
    for (const answer of answers) expect(answer).toMatchObject(refused);
    await process.definitions.setEnabled(chainId, true, ACTOR);
    const { runId, repeated } = await process.runs.start(chainId, { ...BY, idempotencyKey: "key 0" });
    expect(repeated).toBe(false);
    expect((await ended(runId)).status).toBe("SUCCESS");
  });
});
