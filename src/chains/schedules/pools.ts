/** Use cases of pools, which limit how many of their nodes run at a time: list, create, resize, delete. */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import { auditedChanges } from "../../kernel/auth/audited-changes.ts";
import type { Db } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { differences } from "../../kernel/json/differences.ts";
import { counted } from "../../kernel/text/sentences.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type ChainsHints, chainsError } from "../catalogue.ts";
import { deletePool, listPools, lockPool, type PoolUsers, setPool } from "../store/definitions.ts";
import { READY_IN_POOL_TOPIC } from "../topics.ts";

export interface Pools {
  list(): ReturnType<typeof listPools>;
  /** Creates it, or changes its size. */
  set(name: string, size: number, actor: Actor, options?: DryRun): Promise<void>;
  remove(name: string, actor: Actor, options?: DryRun): Promise<void>;
}

export function createPools({ db, wake, hints }: { db: Db; wake: Wake; hints: ChainsHints }): Pools {
  return {
    list: () => listPools(db),

    set: (name, size, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const before = await lockPool(tx, name);
        await setPool(tx, name, size);
        const changes = before && auditedChanges(differences(before, { size }));
        await audit(tx, actor, "pool.set", name, { size, ...changes });
        tx.afterCommit(() => wake.hint(READY_IN_POOL_TOPIC));
        hints.changed(tx, "pool", name);
      }),

    remove: (name, actor, options = FOR_REAL) =>
      transact(db, options, async (tx) => {
        const users = await deletePool(tx, name);
        if (!users) throw chainsError("POOL_NOT_FOUND", { name });
        const because = whoUses(users);
        if (because !== undefined) throw chainsError("POOL_IN_USE", { name, ...users }, { because });
        await audit(tx, actor, "pool.delete", name);
        hints.changed(tx, "pool", name);
      }),
  };
}

function whoUses({ chains, chain, nodes, runs }: PoolUsers): string | undefined {
  const held = nodes === 1 ? "1 node waits for it or runs in it" : `${nodes} nodes wait for it or run in it`;
  const named = chains === 1 ? `chain \`${chain}\` names it` : `${chains} chains name it, for example \`${chain}\``;
  if (chains > 0) return nodes > 0 ? `${named}, and ${held}` : named;
  if (nodes > 0) return held;
  return runs > 0 ? `${counted(runs, "open run")} may still need it` : undefined;
}
