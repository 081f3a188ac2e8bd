/** Use cases of a tenant's model: choose, show, remove. */
import { type Actor, audit } from "../../kernel/auth/audit.ts";
import type { Db } from "../../kernel/data/db.ts";
import { type DryRun, FOR_REAL, transact } from "../../kernel/data/dry-run.ts";
import { invalid } from "../../kernel/errors.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import { type LineageHints, lineageError } from "../catalogue.ts";
import type { TenantModel } from "./model.ts";
import type { Providers } from "./providers/providers.ts";
import { readModel, writeModel } from "./store/models.ts";
import { MODELS_TOPIC, TENANTS_TOPIC } from "./topics.ts";

export interface Models {
  /** Null if it has chosen none. */
  get(tenantId: string): Promise<TenantModel | null>;
  /** Whatever the tenant has by another model, or not at all, is queued soon after. */
  choose(tenantId: string, model: TenantModel, actor: Actor, options?: DryRun): Promise<TenantModel>;
  /** What was computed stays; what is queued is canceled as its turn comes. */
  remove(tenantId: string, actor: Actor, options?: DryRun): Promise<void>;
}

export interface ModelsDeps {
  db: Db;
  wake: Wake;
  hints: LineageHints;
  providers: Providers;
}

export function createModels({ db, wake, hints, providers }: ModelsDeps): Models {
  async function write(tenantId: string, model: TenantModel | null, actor: Actor, options: DryRun): Promise<void> {
    const action = model ? "tenant.model" : "tenant.model-remove";
    await transact(db, options, async (tx) => {
      if (!(await writeModel(tx, tenantId, model))) throw lineageError("TENANT_NOT_FOUND", { tenantId });
      await audit(tx, actor, action, tenantId, model ?? {});
      hints.changed(tx, "tenant", tenantId, { tenantId });
      tx.afterCommit(() => {
        wake.hint(TENANTS_TOPIC);
        wake.hint(MODELS_TOPIC);
      });
    });
  }

  return {
    async get(tenantId) {
      const row = await readModel(db, tenantId);
      if (!row) throw lineageError("TENANT_NOT_FOUND", { tenantId });
      return row.model;
    },
    async choose(tenantId, model, actor, options = FOR_REAL) {
      for (const one of [model.embedding, model.summary]) {
        const problem = one && providers.problemOf(one);
        if (problem) throw invalid(problem);
      }
      await write(tenantId, model, actor, options);
      return model;
    },
    remove: (tenantId, actor, options = FOR_REAL) => write(tenantId, null, actor, options),
  };
}
