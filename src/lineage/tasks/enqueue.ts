/** Queues the tasks that changed assets need: by the kind of asset, the tenant's model and the hash of the content. */
import type { Queryable } from "../../kernel/data/db.ts";
import type { Attributes } from "../graph/facts.ts";
import type { AssetName } from "../graph/names.ts";
import { fingerprintsOf, type TenantModel } from "./model.ts";
import type { TaskStatus } from "./states.ts";
import { enqueueTasks, type NewTask } from "./store/tasks.ts";
import { textOf } from "./text.ts";

export interface ChangedAsset {
  id: string;
  name: AssetName;
  /** All that the asset has after the change, as it is stored. */
  attributes: Attributes;
}

export interface TaskTenant {
  id: string;
  code: string;
  model: TenantModel | null;
}

/** Queues what the assets lack; answers how many tasks are to be worked on now that were not before. */
export function enqueue(
  tx: Queryable,
  tenant: TaskTenant,
  changed: readonly ChangedAsset[],
  wantedAgain: readonly TaskStatus[],
): Promise<number> {
  const fingerprints = fingerprintsOf(tenant.model);
  if (fingerprints.embedding === null && fingerprints.summary === null) return Promise.resolve(0);
  const tasks = new Map<string, NewTask>(); // A batch of events may have changed an asset more than once: the last counts.
  for (const asset of changed) {
    const task = taskOf(asset, fingerprints);
    if (task) tasks.set(asset.id, task);
  }
  return enqueueTasks(tx, tenant, [...tasks.values()], wantedAgain);
}

function taskOf(
  { id, name, attributes }: ChangedAsset,
  { embedding, summary }: { embedding: string | null; summary: string | null },
): NewTask | undefined {
  const text = textOf(name, attributes);
  // A statement is summarised and embedded by one task, since the summary is part of what is embedded.
  const summarised = name.kind === "SQL" ? summary : null;
  const fingerprint = summarised ?? embedding;
  if (!text || fingerprint === null) return undefined;
  return {
    task_type: summarised === null ? "EMBEDDING" : "SQL_SUMMARY",
    resource_type: name.kind,
    resource_id: id,
    content_hash: text.hash,
    model_fingerprint: fingerprint,
    embedding_fingerprint: embedding,
    summary_fingerprint: summarised,
  };
}
