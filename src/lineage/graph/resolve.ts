/**
 * Resolves a name at a time to the asset that it meant, by the name that this asset has today. Tables are dropped, renamed
 * and created again, and events arrive in any order. So a name is followed from the time of its use through all later
 * renames; a later drop leads to nothing.
 */
import { type AssetName, keyOf, type Name, rebase, selfAndParents } from "./names.ts";

/** Why a reported rename does not count: nothing had its old name, or another table had the new one. */
export type Doubt = "unknown" | "taken";

export interface Ending {
  at: number;
  /** `replaced`: another asset was given this name. `listed`: of a table, all columns but `columns` were gone by then. */
  kind: "dropped" | "renamed" | "replaced" | "listed";
  to: AssetName | null;
  columns: ReadonlySet<string> | null;
  /** Whether an engine reports it, so that it may be in doubt. */
  reported: boolean;
  /** One in doubt does not count. */
  doubt: Doubt | null;
}

/** The endings and aliases of a tenant, as far as the names to be resolved need them. */
export interface NameHistory {
  /** By key of the name, in the order of time. */
  endings: ReadonlyMap<string, readonly Ending[]>;
  /** By key of a table's other name. */
  aliases: ReadonlyMap<string, AssetName>;
}

/** Far more renames than a table has; it ends renames of one moment that form a cycle. */
const STEPS_MAX = 1_000;

/**
 * Returns undefined if the asset is gone. An ending at the time of use itself does not count: the use comes after it. With
 * `before`, the name that the asset had just before that time.
 */
export function resolve<N extends Name>(
  name: N,
  at: number,
  history: NameHistory,
  before = Number.POSITIVE_INFINITY,
): N | undefined {
  let current: Name = resolveAliases(name, history.aliases);
  let since = at;
  for (let step = 0; step < STEPS_MAX; step += 1) {
    const next = nextEnding(current, since, history);
    if (!next || next.ending.at >= before) return current as N;
    if (!next.ending.to) return undefined;
    current = resolveAliases(rebase(current, next.of, next.ending.to), history.aliases);
    since = next.ending.at;
  }
  return undefined;
}

function nextEnding(
  name: Name,
  since: number,
  { endings }: NameHistory,
): { of: AssetName; ending: Ending } | undefined {
  let first: { of: AssetName; ending: Ending } | undefined;
  for (const of of selfAndParents(name)) {
    const ending = endings
      .get(keyOf(of))
      ?.find((one) => one.at > since && one.doubt === null && concerns(one, name, of));
    // Of endings of one moment, a drop of a parent comes first; but for a column that is renamed together with its table, its
    // own rename decides.
    const isFirst = ending && (!first || ending.at < first.ending.at || (ending.at === first.ending.at && !ending.to));
    if (isFirst) first = { of: of as AssetName, ending };
  }
  return first;
}

function concerns({ columns }: Ending, name: Name, of: Name): boolean {
  if (columns === null) return true;
  const column = name.path[of.path.length + (name.kind === "LINK" ? 1 : 0)];
  return (name.kind === "COLUMN" || isLinkOfColumn(name)) && column !== undefined && !columns.has(column);
}

function isLinkOfColumn({ kind, path }: Name): boolean {
  return kind === "LINK" && path[0] === "COLUMN";
}

/** Replaces an alias of a table, also in the name of a column or link below it. A cycle of aliases means its lesser key. */
export function resolveAliases<N extends Name>(name: N, aliases: NameHistory["aliases"]): N {
  if (aliases.size === 0) return name;
  const table = selfAndParents(name).find(({ kind }) => kind === "TABLE") as AssetName | undefined;
  if (!table) return name;
  const passed = new Map<string, AssetName>();
  let current = table;
  for (;;) {
    const key = keyOf(current);
    if (passed.has(key)) {
      const circle = [...passed].sort(([a], [b]) => (a < b ? -1 : 1));
      current = circle[0]?.[1] ?? current;
      break;
    }
    const to = aliases.get(key);
    if (!to) break;
    passed.set(key, current);
    current = to;
  }
  return current === table ? name : (rebase(name, table, current) as N);
}
