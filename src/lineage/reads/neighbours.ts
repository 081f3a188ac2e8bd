/** The direct neighbours of an asset: how many a graph leaves out, and all of them as a list. */
import type { Db } from "../../kernel/data/db.ts";
import type { NodeKind } from "../graph/names.ts";
import { timeOf } from "./events.ts";
import { assetById, isId } from "./find.ts";
import type { Direction, Link } from "./findings.ts";
import { shown } from "./shown.ts";
import {
  countNeighbours,
  type EdgePlace,
  listNeighbours,
  type NeighbourRow,
  type NeighboursAsked,
} from "./store/neighbours.ts";

/** Kinds of edges by where they lead: from what comes first to what follows, or from what depends to what it depends on. */
const FORWARD = ["INPUT_OF", "OUTPUT_TO"];
const BACKWARD = ["DERIVES_FROM", "MEASURES", "FILTERS_BY", "DERIVED_FROM", "COMPUTED_FROM"];
/** Of one asset by one kind of edges; as many means: at least so many. */
export const NEIGHBOUR_COUNT_MAX = 10_000;

export interface More {
  moreUp: number;
  moreDown: number;
}

/** By id, how many direct neighbours of each asset are not in a graph with these links. */
export async function leftOut(
  db: Db,
  tenantId: string,
  ids: readonly string[],
  links: readonly Link[],
  to: readonly NodeKind[],
): Promise<(id: string) => More> {
  const drawn = new Map<string, number>();
  const add = (key: string, count: number) => drawn.set(key, (drawn.get(key) ?? 0) + count);
  for (const link of links) {
    add(`${link.from} down ${link.kind}`, 1);
    add(`${link.to} up ${link.kind}`, 1);
  }
  const more = new Map(ids.map((id) => [id, { moreUp: 0, moreDown: 0 }]));
  const counted = { ids, kinds: [...FORWARD, ...BACKWARD], to, countMax: NEIGHBOUR_COUNT_MAX };
  for (const how of ["along", "against"] as const) {
    for (const { id, kind, count } of await countNeighbours(db, tenantId, how, counted)) {
      const isDown = FORWARD.includes(kind) === (how === "along");
      const left = Math.max(0, count - (drawn.get(`${id} ${isDown ? "down" : "up"} ${kind}`) ?? 0));
      const entry = more.get(id);
      if (entry) entry[isDown ? "moreDown" : "moreUp"] += left;
    }
  }
  return (id) => more.get(id) ?? { moreUp: 0, moreDown: 0 };
}

export type NeighboursQuery = Pick<NeighboursAsked, "q" | "after" | "limit"> & { direction: Direction };

export async function neighboursOf(db: Db, tenantId: string, id: string, query: NeighboursQuery) {
  const { direction, ...asked } = query;
  await assetById(db, tenantId, id);
  const [along, against] = direction === "down" ? [FORWARD, BACKWARD] : [BACKWARD, FORWARD];
  const { rows, end } = await listNeighbours(db, tenantId, { ...asked, id, along, against });
  return { items: rows.map(neighbour), next: end ? `${end.kind}-${end.id}` : null };
}

function neighbour(row: NeighbourRow) {
  return {
    ...shown(row),
    relation: row.edge_kind,
    executions: row.executions === null ? null : Number(row.executions),
    lastRunAt: row.last_execution_at === null ? null : timeOf(row.last_execution_at),
  };
}

/** Nothing if the text is none of ours. */
export function neighbourAfter(cursor: string): EdgePlace | null {
  const [, kind = "", id = ""] = /^([A-Z_]{1,32})-(\d{1,19})$/.exec(cursor) ?? [];
  return kind !== "" && isId(id) ? { kind, id } : null;
}
