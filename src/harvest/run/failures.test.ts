/** Answers of failed requests are kept, each once, and not without end. */
import { brotliDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { createFailures, FAILURES_MAX } from "./failures.ts";
import type { Exchange } from "./fetch.ts";
import { type Asked, correct, itemsOf, type Said, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
// Without a data directory, bodies are rows.
const harvests = useScripted(database);

interface Kept {
  no: number;
  status: number | null;
  action: string;
  body: string | null;
}
const keptOf = async (planId: string): Promise<Kept[]> =>
  (
    await database.query<Omit<Kept, "body"> & { content: Buffer | null }>(
      `select f.failure_no as no, f.status, f.action_code as action, b.content
       from harvest.request_failure f join harvest.ing_task_run r using (run_id) join harvest.ing_task t using (task_id)
       left join harvest.body b on b.body_hash = f.body_hash
       where t.plan_id = $1 order by f.run_id, f.failure_no`,
      [planId],
    )
  ).map(({ content, ...kept }) => ({ ...kept, body: content && brotliDecompressSync(content).toString() }));

/** Fails twice on each page, with another text each time, and for good at offset 20. */
function failing() {
  const answer = correct(itemsOf(30));
  let no = 0;
  return (request: Asked): Said | Promise<Said> => {
    no += 1;
    if (request.query.get("offset") === "20") return { status: 400, body: { error: "refused" } };
    return no % 3 === 0 ? answer(request) : { status: 500, body: { error: no } };
  };
}

describe("the answers of failed requests", () => {
  const failed = [1, 2, 4, 5].map((no, index) => ({
    no: index + 1,
    status: 500,
    action: "RETRY",
    body: JSON.stringify({ error: no }),
  }));
  const last = { no: 5, status: 400, action: "FAILED", body: '{"error":"refused"}' };

  test.each(["failures", "all"])("are kept each, with `bodies: %s`", async (bodies) => {
    const { planId, status } = await harvests.harvest(await harvests.source(failing(), { bodies }));
    expect(status).toBe("FAILED");
    expect(await keptOf(planId)).toEqual([...failed, last]);
  });

  test("are told without their bodies, with `bodies: none`", async () => {
    const { planId } = await harvests.harvest(await harvests.source(failing(), { bodies: "none" }));
    expect(await keptOf(planId)).toEqual([...failed, last].map((kept) => ({ ...kept, body: null })));
  });
});

describe("of a run", () => {
  const failure = (body: Buffer, no: number) => ({
    action: "RETRY",
    reason: String(no),
    exchange: { status: 500, request: {}, body } as unknown as Exchange,
  });
  async function written(bodies: readonly Buffer[]) {
    const failures = createFailures();
    for (const [index, body] of bodies.entries()) failures.add(failure(body, index + 1));
    const rows: { reasons: string[]; hashes: string[] }[] = [];
    const prepare = async (bytes: Buffer) => ({ hash: String(bytes.length), commitIn: async () => {} });
    const prepared = await failures.prepare({ prepare }, true);
    const tx = {
      rows: async (_: unknown, values: unknown[]) => {
        const [, , , , , reasons = [], hashes = []] = values.map((array) => String(array).split(/[{},]/).slice(1, -1));
        rows.push({ reasons, hashes });
        return [];
      },
    };
    await prepared.commitIn(tx as never, "1");
    return rows[0];
  }

  test("the first failures and the last are kept", async () => {
    const all = await written(Array.from({ length: 50 }, () => Buffer.from("x")));
    expect(all?.reasons).toHaveLength(FAILURES_MAX);
    expect(all?.reasons.slice(-2)).toEqual([`"${FAILURES_MAX - 1}"`, '"50"']);
  });

  test("bodies beyond 32 MiB are not", async () => {
    const sizes = [20_000_000, 13_000_000, 1_000_000, 1_000_000];
    const all = await written(sizes.map((size) => Buffer.alloc(size)));
    expect(all?.hashes).toEqual(['"20000000"', '"13000000"', "NULL", "NULL"]);
  });
});
