import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import {
  type Claimed,
  type ItemRow,
  type Key,
  numbersOf,
  WORK_TABLES,
  type WorkTable,
} from "../../../test/work-tables.ts";

const database = useDatabase();
const HOLDERS = 3;
const LOST_LIMIT = 2;
const RUNS = process.env["MILLRACE_TEST_LONG"] ? 60 : 20;

/** An in-memory model of the lease: an item is ready, held by one claim, or ended. */
interface Model {
  items: Map<number, ModelItem>;
}

interface ModelItem {
  priority: number;
  state: string;
  lost: number;
  claims: number;
  note: string | null;
  /** The claim that holds it. */
  claim: Claim | undefined;
  /** The session or lease of its holder has expired. */
  overdue: boolean;
}

/** One claim of one item. Holders keep old ones, so that commands try them too. */
interface Claim {
  n: number;
  holder: string;
  claimed: Claimed;
}

/** The real table, with all claims so far. */
interface Real {
  work: WorkTable;
  holders: string[];
  pastClaims: Claim[];
}

type Command = fc.AsyncCommand<Model, Real>;

describe.each(WORK_TABLES)("with $shape", (work) => {
  beforeAll(() => work.create(database));

  test("random commands of several holders leave the table as the model says", async () => {
    const holder = fc.nat(HOLDERS - 1);
    const commands = fc.commands<Model, Real, false>(
      [
        fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }).map(add),
        fc.tuple(holder, fc.integer({ min: 1, max: 3 })).map(claimItems),
        fc.tuple(fc.nat(), fc.constantFrom("done", "failed")).map(finish),
        fc.nat().map(release),
        ...(work.extend ? [fc.nat().map(extend)] : []),
        holder.map(fallSilent),
        fc.constant(undefined).map(reclaim),
      ],
      { size: "+1" },
    );
    await fc.assert(
      fc.asyncProperty(commands, async (sequence) => {
        await work.clear(database);
        const holders = await Promise.all(Array.from({ length: HOLDERS }, () => work.holder(database)));
        const setup = () => ({ model: { items: new Map() }, real: { work, holders, pastClaims: [] } });
        await fc.asyncModelRun(setup, sequence);
      }),
      { numRuns: RUNS },
    );
  });
});

const FREE = { claim: undefined, overdue: false };

const add = (priorities: readonly number[]): Command =>
  command(`add items of priority ${priorities.join(", ")}`, async (model, { work }) => {
    const items = priorities.map((priority, index) => ({ n: model.items.size + index + 1, priority }));
    const state = work.states.ready[0];
    for (const { n, priority } of items)
      model.items.set(n, { priority, state, lost: 0, claims: 0, note: null, ...FREE });
    await work.add(database, items);
  });

const claimItems = ([who, limit]: [number, number]): Command =>
  command(`holder ${who} claims ${limit}`, async (model, { work, holders, pastClaims }) => {
    const holder = holders[who] as string;
    const expected = [...model.items]
      .filter(([, { state }]) => state === work.states.ready[0])
      .sort(([n, one], [m, other]) => one.priority - other.priority || n - m)
      .slice(0, limit);
    const claimed = await work.claim(database.db, holder, limit);
    expect(numbersOf(claimed)).toEqual(ascending(expected.map(([n]) => n)));
    for (const [n, item] of expected) {
      const claim = { n, holder, claimed: claimed.find((key) => Number(key.n) === n) as Claimed };
      Object.assign(item, { state: work.states.leased, claims: item.claims + 1, claim });
      pastClaims.push(claim);
    }
  });

const finish = ([pick, outcome]: [number, string]): Command =>
  withClaim(`finish as ${outcome}`, pick, async ({ work, claim, item, held }) => {
    const note = outcome === "failed" ? `broke in claim ${claim.claimed.fence}` : null;
    const finished = { ...claim.claimed, note };
    if (held) Object.assign(item, { state: outcome, note, ...FREE });
    return work.lease.finish(database.db, outcome, [finished]);
  });

const release = (pick: number): Command =>
  withClaim("release", pick, async ({ work, claim, item, held }) => {
    if (held) Object.assign(item, { state: work.states.ready[0], ...FREE });
    return work.lease.release(database.db, [claim.claimed]);
  });

const extend = (pick: number): Command =>
  withClaim("extend", pick, async ({ work, claim, item, held }) => {
    if (held) item.overdue = false;
    return work.lease.extend(database.db, [claim.claimed], 60);
  });

/** The lease of the holder expires, and it continues under a new name, like a suspended process. */
const fallSilent = (who: number): Command =>
  command(`holder ${who} expires`, async (model, { work, holders }) => {
    const holder = holders[who] as string;
    await work.expire(database, holder);
    holders[who] = await work.holder(database);
    for (const item of model.items.values()) if (item.claim?.holder === holder) item.overdue = true;
  });

const reclaim = (): Command =>
  command("reclaim", async (model, { work }) => {
    const expected = [...model.items].filter(([, { overdue }]) => overdue);
    const reclaimed = await work.lease.reclaim(database.db, { limit: 1_000, lostLimit: LOST_LIMIT });
    expect(numbersOf(reclaimed)).toEqual(ascending(expected.map(([n]) => n)));
    for (const [, item] of expected) {
      const lost = item.lost + 1;
      Object.assign(item, { lost, state: lost >= LOST_LIMIT ? work.states.dead : work.states.ready[0], ...FREE });
    }
  });

/** Tries something with a present or former claim; only a present one may have an effect. */
function withClaim(
  name: string,
  pick: number,
  attempt: (at: { work: WorkTable; claim: Claim; item: ModelItem; held: boolean }) => Promise<readonly Key[]>,
): Command {
  return command(`${name}, claim ${pick}`, async (model, { work, pastClaims }) => {
    const claim = pastClaims[pick % Math.max(1, pastClaims.length)];
    const item = claim && model.items.get(claim.n);
    if (!item) return;
    const held = item.claim === claim;
    expect(numbersOf(await attempt({ work, claim, item, held }))).toEqual(held ? [claim.n] : []);
  });
}

/** After every command the whole table is compared. */
function command(name: string, run: (model: Model, real: Real) => Promise<void>): Command {
  return {
    check: () => true,
    toString: () => name,
    async run(model, real) {
      await run(model, real);
      const expected = [...model.items].map(([n, { state, lost, claims, note, claim }]): ItemRow => {
        const held = claim !== undefined;
        // A finished item keeps the fence that it was finished under.
        return { n, state, held, fenced: held || ["done", "failed"].includes(state), lost, claims, note };
      });
      expect(await real.work.rows(database)).toEqual(expected);
    },
  };
}

const ascending = (values: number[]) => values.sort((one, other) => one - other);
