/** Loads the endings and aliases of names, and of the names that these lead to, and resolves names from memory. */
import type { Queryable } from "../../kernel/data/db.ts";
import { aliasesOf, endingsOf } from "../store/name-history.ts";
import { type AssetName, keyOf, type Name, rebase, selfAndParents } from "./names.ts";
import { type Ending, resolve } from "./resolve.ts";

export interface LoadedNameHistory {
  /** To be called before `resolve`, with every name that will be resolved. */
  load(names: readonly Name[]): Promise<void>;
  resolve<N extends Name>(name: N, at: number): N | undefined;
  /** The assets that a loaded name has led to. */
  reached(): Iterable<AssetName>;
  /** By key of a table's other name. */
  aliases: ReadonlyMap<string, AssetName>;
  /** By key of the name, in the order of time. */
  endings: ReadonlyMap<string, readonly Ending[]>;
}

export function createNameHistory(tx: Queryable, tenantId: string): LoadedNameHistory {
  const endings = new Map<string, Ending[]>();
  const aliases = new Map<string, AssetName>();
  const reached = new Map<string, AssetName>();
  const loaded = new Set<string>();
  const followed = new Set<string>();

  async function load(names: readonly Name[]): Promise<void> {
    const fresh = new Map<string, Name>();
    for (const name of names) {
      for (const one of selfAndParents(name)) {
        const key = keyOf(one);
        if (!loaded.has(key)) fresh.set(key, one);
      }
    }
    if (fresh.size > 0) await ask(fresh);
    // Each name once: tables that were renamed back and forth lead to each other.
    const next = new Map<string, Name>();
    for (const name of names) {
      const key = keyOf(name);
      if (followed.has(key)) continue;
      followed.add(key);
      for (const to of ledTo(name)) next.set(keyOf(to), to);
    }
    if (next.size > 0) await load([...next.values()]);
  }

  async function ask(fresh: ReadonlyMap<string, Name>): Promise<void> {
    for (const key of fresh.keys()) loaded.add(key);
    const tables = [...fresh].filter(([, { kind }]) => kind === "TABLE").map(([key]) => key);
    const [named, ended] = await Promise.all([
      tables.length > 0 ? aliasesOf(tx, tenantId, tables) : [],
      endingsOf(tx, tenantId, [...fresh.keys()]),
    ]);
    for (const { key, to_path } of named) aliases.set(key, { kind: "TABLE", path: to_path });
    for (const { key, at, kind, to_path, columns, reported, doubt } of ended) {
      const to = to_path && ({ kind: fresh.get(key)?.kind, path: to_path } as AssetName);
      const ending = { at: Number(at), kind, to, columns: columns && new Set(columns), reported, doubt };
      const known = endings.get(key);
      if (known) known.push(ending);
      else endings.set(key, [ending]);
    }
  }

  /** Where one step takes a name, by an alias or a rename of itself or of what is above it. */
  function ledTo(name: Name): Name[] {
    return selfAndParents(name).flatMap((one) => {
      const key = keyOf(one);
      const targets = [aliases.get(key), ...(endings.get(key) ?? []).map(({ to }) => to)];
      return targets.flatMap((to) => {
        if (!to) return [];
        const next = rebase(name, one as AssetName, to);
        if (next.kind !== "LINK") reached.set(keyOf(next), next);
        return [next];
      });
    });
  }

  return {
    load,
    resolve: (name, at) => (endings.size + aliases.size === 0 ? name : resolve(name, at, { endings, aliases })),
    reached: () => reached.values(),
    aliases,
    endings,
  };
}
