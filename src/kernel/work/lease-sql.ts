/**
 * The SQL of a lease, generated from the description of its table (lease.ts). docs/leases.md shows the statements of every
 * lease in full, ready for EXPLAIN.
 */
import { itemsByKey } from "../data/batch.ts";
import type { Assignments, LeaseSpec } from "./lease.ts";

export interface LeaseSql {
  claim: string;
  /** For a lease with a limit for each key. */
  byKey: { lockKeys: string; claimIn: string } | undefined;
  /** Assignments that end the hold. */
  drop: string;
  /** Assignments of a release. */
  release: string;
  /** Assignments of a loss; `limit` is the SQL of the number of losses after which an item is dead. */
  lose(limit: string): string;
  /** Assignments of an extension, for leases held item by item. */
  extend: string | undefined;
  /** The guard of everything that the holder of `i.fence` does. */
  stillHeld: string;
  hold: string;
  /** For leases held by session. */
  heldBy: string | undefined;
  expired: string;
  reclaim: string;
}

export function leaseSql(spec: LeaseSpec): LeaseSql {
  const { table, state, hold, fence } = spec;
  const keyNames = Object.keys(spec.key);
  const key = (alias: string) => keyNames.map((name) => `${alias}.${name}`).join(", ");
  const sameKey = (alias: string) => keyNames.map((name) => `t.${name} = ${alias}.${name}`).join(" and ");
  const readyStates = state.ready.map(quote);
  const stateIn = (states: readonly string[]) =>
    states.length === 1 ? `t.${state.column} = ${states[0]}` : `t.${state.column} in (${states.join(", ")})`;
  const inQueue = [stateIn(readyStates), spec.scope, spec.readyWhen].filter(Boolean).join(" and ");
  const ready = spec.dueAt ? `${inQueue} and t.${spec.dueAt} <= now()` : inQueue;
  const leased = stateIn([quote(state.leased)]);
  const leasedHere = spec.scope ? `${leased} and ${spec.scope}` : leased;
  const stillHeld = `${leased} and t.${fence} is not distinct from i.fence`;

  const holding =
    hold.by === "item"
      ? {
          take: `${hold.owner} = $2, ${hold.until} = now() + make_interval(secs => $3)`,
          drop: `${hold.owner} = null, ${hold.until} = null`,
          expired: `t.${hold.until} <= now()`,
        }
      : {
          take: `${hold.session} = $2::bigint`,
          drop: `${hold.session} = null`,
          expired: `not exists (select from kernel.session s where s.id = t.${hold.session} and s.expires_at > now())`,
        };

  const returned = `${key("t")}, t.${fence}::text as fence`;
  const take = `update ${table} t
     set ${state.column} = ${quote(state.leased)}, ${fence} = nextval('kernel.fence'), ${holding.take}${also(spec.onClaim)}
     from picked p where ${sameKey("p")} returning ${returned}${spec.returning ? `, ${spec.returning.sql}` : ""}`;
  const backToReady = `${fence} = null, ${holding.drop}`;

  function lose(limit: string): string {
    const isDead = `t.${spec.lost.column} + 1 >= ${limit}`;
    const onReturn = { ...spec.onReturn };
    for (const [column, value] of Object.entries(spec.onDead ?? {})) {
      onReturn[column] = `case when ${isDead} then ${value} else ${onReturn[column] ?? `t.${column}`} end`;
    }
    const { error } = spec.lost;
    if (error !== undefined) {
      const reason = `'lost ' || t.${spec.lost.column} + 1 || ' workers in a row'`;
      onReturn[error] = `case when ${isDead} then ${reason} else t.${error} end`;
    }
    return `${state.column} = case when ${isDead} then ${quote(state.dead)} else ${readyStates[0]} end,
         ${spec.lost.column} = t.${spec.lost.column} + 1, ${backToReady}${also(onReturn)}`;
  }

  /**
   * The levels of the queue, one step of the ready index each. A claim reads level by level, so that each is a range of the index
   * in its order. As one range, the items of the first level that are due later come before those of the next, and while statistics
   * know of no ready item, the planner reads and sorts all items of the queue instead.
   */
  function levelsOf(expression: string, where: string): string {
    const next = (bound: string) =>
      `select ${expression} as level from ${table} t where ${inQueue}${where}${bound} order by 1 limit 1`;
    return `(
               with recursive levels(level) as (
                 (${next("")})
                 union all
                 select (${next(` and ${expression} > levels.level`)}) from levels where level is not null
               )
               select level from levels where level is not null
             ) l`;
  }

  function claimed(): string {
    const of = (where: string) =>
      `select ${key("t")} from ${table} t where ${ready}${where} order by ${spec.orderBy} limit $1 for update skip locked`;
    if (spec.levels === undefined) return of("");
    // The limit of all stops the join, so no more rows are locked than are taken. As an array, the planner expects few levels, and so
    // few rows: for more it would read the whole table to update them, while statistics know of a few.
    return `select t.* from unnest(array(select level from ${levelsOf(spec.levels, "")} order by level)) as l(level), lateral (
         ${of(` and ${spec.levels} = l.level`)}
       ) t limit $1`;
  }

  function byKey({ column, limit, fairBy }: NonNullable<LeaseSpec["concurrency"]>): NonNullable<LeaseSql["byKey"]> {
    const running = `(select count(*) from ${table} t where ${leased} and t.${column} = k.key)`;
    // The rank of an item counts what its key already holds, so the key that holds least goes first.
    const ranked = `(select t.*, t.lease_taken + row_number() over (partition by t.${column} order by ${spec.orderBy}) as lease_rank
            from candidates t) t order by ${fairBy}, t.lease_rank, ${spec.orderBy}`;
    const nextKey = (bound: string) =>
      `select t.${column} as key from ${table} t where ${ready} and t.${column} ${bound} order by 1 limit 1`;
    const ofRoom = (where: string) => `select t.* from ${table} t where ${ready} and t.${column} = room.key${where}
             order by ${spec.orderBy} limit greatest(least(room.free, $1), 0)`;
    const ofKey =
      fairBy === undefined
        ? ofRoom("")
        : `select t.* from ${levelsOf(fairBy, ` and t.${column} = room.key`)}, lateral (
               ${ofRoom(` and ${fairBy} = l.level`)}
             ) t order by ${spec.orderBy} limit greatest(least(room.free, $1), 0)`;
    return {
      // Skips from key to key on the ready index, so that a million items of one busy key cost one step, and takes an
      // advisory lock on each key, so that two claims never count the free places of a key at the same time. A claim waits
      // for the lock, because an empty answer would let its process sleep while there is work. All claims lock in key
      // order, so they cannot deadlock. The free places are counted by the next statement: the snapshot of this one may be
      // older than the lock. That statement locks only the rows that it takes: each key may offer as many as the claim wants.
      // `coalesce` keeps the planner from using the ready index to find a row by its key: while statistics know of no ready
      // item, it would read the whole index for each row.
      lockKeys: `with recursive keys(key, n) as (
           (select key, 1 from (${nextKey(">= $1")}) first)
           union all
           select (${nextKey("> keys.key")}), n + 1 from keys where key is not null and n < $2
         )
         select key, pg_advisory_xact_lock(hashtextextended('${spec.name} ' || key, 0))
         from keys where key is not null`,
      claimIn: `with room as materialized (
           select k.key, ${fairBy === undefined ? "" : `${running} as taken, `}coalesce((${limit}), 0) - ${running} as free
           from unnest($${hold.by === "item" ? 4 : 3}::text[]) as k(key)
         ), candidates as materialized (
           select c.*${fairBy === undefined ? "" : ", room.taken as lease_taken"} from room, lateral (
             ${ofKey}
           ) c
         ), chosen as materialized (
           select ${key("t")} from ${fairBy === undefined ? `candidates t order by ${spec.orderBy}` : ranked} limit $1
         ), picked as materialized (
           select ${key("t")} from chosen c join ${table} t on ${sameKey("c")} where coalesce(${ready}, false) for update of t skip locked
         ) ${take}`,
    };
  }

  return {
    // "materialized" is required: a locking subquery that ran twice would lock more rows than the limit.
    claim: `with picked as materialized (
       ${claimed()}
     ) ${take}`,
    byKey: spec.concurrency && byKey(spec.concurrency),
    drop: holding.drop,
    release: `${state.column} = ${readyStates[0]}, ${backToReady}${also(spec.onReturn)}`,
    lose,
    extend: hold.by === "item" ? `${hold.until} = now() + make_interval(secs => i.seconds)` : undefined,
    stillHeld,
    hold: `select ${key("t")} from ${itemsByKey(spec.key, { fence: "int8" })}
     join ${table} t on ${sameKey("i")} where ${leased} and t.${fence} = i.fence for update of t`,
    heldBy:
      hold.by === "session"
        ? `select ${returned} from ${table} t where ${leasedHere} and t.${hold.session} = $1::bigint`
        : undefined,
    expired: `select ${returned} from ${table} t where ${leasedHere} and ${holding.expired} limit $1`,
    reclaim: `with picked as materialized (
       select ${key("t")} from ${table} t where ${leasedHere} and ${holding.expired} limit $1 for update skip locked
     ) update ${table} t
     set ${lose("$2")}
     from picked p where ${sameKey("p")} returning ${key("t")}, t.${state.column} as state`,
  };
}

function also(assignments: Assignments | undefined): string {
  return Object.entries(assignments ?? {})
    .map(([column, value]) => `, ${column} = ${value}`)
    .join("");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
