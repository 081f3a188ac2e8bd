/**
 * Computes the outcomes of a batch: reads the present state of each task's asset, asks the model for what is missing, and returns
 * an outcome for each task. It writes nothing.
 */

import { fingerprintsOf, type TenantModel } from "./model.ts";
import { embedEach } from "./providers/embed-each.ts";
import { normalized } from "./providers/hash-embedder.ts";
import { ProviderError } from "./providers/provider.ts";
import type { Providers } from "./providers/providers.ts";
import type { AssetAtWork, EmbeddingResult, SummaryResult } from "./store/results.ts";
import type { ClaimedTask, Lane } from "./store/tasks.ts";
import { embeddedText, textOf } from "./text.ts";

/**
 * `done` has what it wanted; `outdated` has an asset that is gone or has other content by now, with a task of its own;
 * `withdrawn` is for a model that the tenant no longer has.
 */
export type Outcome = "done" | "outdated" | "withdrawn" | ProviderError;

export interface Worked {
  outcomes: Map<string, Outcome>;
  embeddings: EmbeddingResult[];
  summaries: SummaryResult[];
}

export interface Work {
  lane: Lane;
  tasks: readonly ClaimedTask[];
  model: TenantModel | null;
  assets: readonly AssetAtWork[];
}

/** A task whose asset really lacks something. */
interface Open {
  task_id: string;
  node_id: string;
  content_hash: string;
  text: string;
  /** As far as it is known already. */
  summary: string | undefined;
  needsSummary: boolean;
  needsEmbedding: boolean;
}

/** How many statements are summarised at the same time: a model takes seconds for each. */
const SUMMARIES_AT_ONCE = 8;

/** Throws only when the signal ended it. */
export async function work(providers: Providers, given: Work, signal: AbortSignal): Promise<Worked> {
  const { lane, model } = given;
  const worked: Worked = { outcomes: new Map(), embeddings: [], summaries: [] };
  const fingerprints = fingerprintsOf(model);
  const summaryFingerprint = lane.task_type === "SQL_SUMMARY" ? fingerprints.summary : null;
  if ((summaryFingerprint ?? fingerprints.embedding) !== lane.model_fingerprint) {
    for (const { id } of given.tasks) worked.outcomes.set(id, "withdrawn");
    return worked;
  }

  const byId = new Map(given.assets.map((asset) => [asset.id, asset]));
  const open: Open[] = [];
  for (const task of given.tasks) {
    const asset = byId.get(task.resource_id);
    const text = asset && textOf(asset, asset.attributes);
    if (!asset || text?.hash !== task.content_hash) {
      worked.outcomes.set(task.id, "outdated");
      continue;
    }
    const has = (fingerprint: string | null, hash: string | null, wanted: string | null) =>
      wanted === null || (fingerprint === wanted && hash === text.hash);
    const needsSummary = !has(asset.summary_fingerprint, asset.summary_hash, summaryFingerprint);
    // A new summary is part of what is embedded.
    const needsEmbedding =
      fingerprints.embedding !== null &&
      (needsSummary || !has(asset.embedding_fingerprint, asset.embedding_hash, fingerprints.embedding));
    worked.outcomes.set(task.id, "done");
    if (!needsSummary && !needsEmbedding) continue;
    open.push({
      task_id: task.id,
      node_id: asset.id,
      content_hash: text.hash,
      text: text.text,
      summary: summaryFingerprint === null || needsSummary ? undefined : (asset.summary ?? undefined),
      needsSummary,
      needsEmbedding,
    });
  }

  const summarised = await summarise(providers, model, open, worked, signal);
  await embed(providers, model, summarised, worked, signal);
  return worked;
}

/** Answers what can go on to be embedded. */
async function summarise(
  providers: Providers,
  model: TenantModel | null,
  open: readonly Open[],
  { outcomes, summaries }: Worked,
  signal: AbortSignal,
): Promise<Open[]> {
  const waiting = open.filter(({ needsSummary }) => needsSummary);
  if (!model?.summary || waiting.length === 0) return [...open];
  let given: ProviderError | undefined; // Why no further call is made.
  const next = waiting.values();
  const summariser = attempt(() => providers.summariser(model.summary!));
  const worker = async () => {
    for (const item of next) {
      const { task_id, node_id, content_hash, text } = item;
      try {
        if (given) throw given;
        if (summariser instanceof ProviderError) throw summariser;
        const made = await summariser.summarise(text, signal);
        item.summary = made.summary;
        summaries.push({ task_id, node_id, content_hash, ...made });
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        if (!error.isOfText) given = error;
        outcomes.set(task_id, error);
      }
    }
  };
  await Promise.all(Array.from({ length: SUMMARIES_AT_ONCE }, worker));
  return open.filter(({ task_id }) => outcomes.get(task_id) === "done");
}

async function embed(
  providers: Providers,
  model: TenantModel | null,
  open: readonly Open[],
  { outcomes, embeddings }: Worked,
  signal: AbortSignal,
): Promise<void> {
  const waiting = open.filter(({ needsEmbedding }) => needsEmbedding);
  if (!model?.embedding || waiting.length === 0) return;
  const embedder = attempt(() => providers.embedder(model.embedding!));
  const texts = waiting.map(({ text, summary }) => embeddedText(text, summary));
  const vectors =
    embedder instanceof ProviderError ? texts.map(() => embedder) : await embedEach(embedder, texts, signal);
  for (const [index, { task_id, node_id, content_hash }] of waiting.entries()) {
    const vector = vectors[index];
    if (vector instanceof ProviderError) outcomes.set(task_id, vector);
    else if (vector) embeddings.push({ task_id, node_id, content_hash, vector: normalized(vector) });
  }
}

/** The error as a value, if it is one of the model. */
function attempt<T>(make: () => T): T | ProviderError {
  try {
    return make();
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
}
