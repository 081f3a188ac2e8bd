/**
 * Commits a page in one transaction: the fence, the records, what is quarantined, the body, the event, the batch and the
 * progress of the slice. Either all of it is there or none.
 */
import type { Db, Tx } from "../../kernel/data/db.ts";
import type { Ids } from "../../kernel/ids.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { Outbox } from "../../kernel/work/outbox.ts";
import { LeaseLost } from "../../kernel/work/run-control.ts";
import type { Wake } from "../../kernel/work/wake.ts";
import type { Bodies, PreparedBody } from "../bodies/bodies.ts";
import type { HarvestHints, HarvestMetrics } from "../catalogue.ts";
import { accessGranted } from "../control/refusals.ts";
import type { Page } from "../decode/index.ts";
import { batchCommitted } from "../plan/events.ts";
import { taskLease } from "../store/queue/tasks.ts";
import { commitBatch, type Quarantined, quarantine } from "../store/records/batches.ts";
import { addBadIds, insertIds, moveIds } from "../store/records/id-items.ts";
import { newlyQuarantined, resolveQuarantined } from "../store/records/quarantine-signals.ts";
import { fillRecords, type IncomingRecord, putRecords, type RecordOrigin } from "../store/records/records.ts";
import type { CompiledEndpoint } from "./compiled.ts";
import type { Exchange } from "./fetch.ts";
import type { PageContent } from "./page-content.ts";
import type { Position } from "./position.ts";
import { isUpdate, updateOf } from "./update-walk.ts";
import type { Walk } from "./walk.ts";

export interface CommitDeps {
  db: Db;
  ids: Pick<Ids, "uuid">;
  bodies: Pick<Bodies, "prepare">;
  outbox: Pick<Outbox, "emit">;
  clock: Clock;
  hints: HarvestHints;
  metrics: HarvestMetrics;
  wake: Pick<Wake, "hint">;
}

export interface FetchedPage {
  /** 1 for a page of the list, 2 for the records of ids. */
  phase: 1 | 2;
  endpoint: CompiledEndpoint;
  exchange: Exchange;
  page: Page;
  content: PageContent;
  /** Where bodies are kept. */
  body: Promise<PreparedBody> | undefined;
  /** Of its ids. */
  hashes: Buffer;
  /** Distinct records that no earlier page had. */
  received: number;
  /** The same of what is quarantined. */
  quarantined: number;
  before: Position;
  next: Position;
  /** The ids that were asked for in the second phase. */
  asked?: { ids: readonly { ord: number; item_id: string }[]; isRetry: boolean };
}

const BAD_ID_DAYS = 7;
/** Of a definition, so that the ids of each page have their own numbers. */
const PAGE_SIZE_MAX = 100_000;

/** Begins to keep the body of a page, where bodies are kept, while the page before this one is still being committed. */
export function keepBody(
  { bodies }: Pick<CommitDeps, "bodies">,
  { spec }: CompiledEndpoint,
  { body }: Exchange,
): Promise<PreparedBody> | undefined {
  if (spec.bodies !== "all") return undefined;
  const keeping = bodies.prepare(body);
  keeping.catch(() => {}); // The commit throws it.
  return keeping;
}

export async function commitPage(deps: CommitDeps, walk: Walk, fetched: FetchedPage): Promise<void> {
  const { context, source } = walk.task;
  const { content, endpoint, exchange } = fetched;
  const startedMs = performance.now();
  const body = await fetched.body;
  const origin: RecordOrigin = {
    endpointId: context.endpoint_id,
    planMonth: context.plan_month,
    sliceId: context.slice_id,
    generation: walk.generation,
    batchNo: walk.batchNo + 1,
    fetchedAt: exchange.sentAt,
  };
  const isIdList = fetched.phase === 1 && source.detail !== undefined;
  const records = isIdList ? [] : content.records;
  const answered = new Set([...content.records, ...content.quarantined].map(({ item_key }) => item_key));
  const { ids: asked = [], isRetry = false } = fetched.asked ?? {};
  // Alone, an id is answered by whatever comes: a record without an id, or with the source's own spelling of it.
  const unanswered =
    asked.length === 1 && answered.size > 0 ? [] : asked.filter(({ item_id }) => !answered.has(item_id));
  const missing = isRetry ? unanswered : [];
  const alone = asked.length === 1 ? (asked[0]?.item_id ?? null) : null;
  const quarantined = [
    ...content.quarantined.map((item) => ({ ...item, item_key: item.item_key ?? alone })),
    ...missing.map(({ item_id }) => missingId(item_id, unansweredReason(walk))),
  ];

  const put = async (tx: Tx) => {
    const { put: some, fill } = isUpdate(walk) ? await updateOf(tx, walk, records) : { put: records, fill: [] };
    const { recordsPerStatement } = endpoint.spec.batching;
    const written = await putInStatements(some, recordsPerStatement, (part) => putRecords(tx, origin, part));
    const filled = await putInStatements(fill, recordsPerStatement, (part) => fillRecords(tx, origin, part));
    return {
      ...written,
      updated: written.updated + filled.updated,
      unchanged: written.unchanged + records.length - some.length - filled.updated,
    };
  };
  const counts = await deps.db.tx(async (tx) => {
    deps.hints.changed(tx, "plan", context.plan_id);
    const [held, written] = await Promise.all([taskLease.hold(tx, [walk.task]), put(tx)]);
    if (held.length === 0) throw new LeaseLost();
    let known = 0;
    if (isIdList) {
      const ids = content.records.map(({ item_key }, index) => ({
        ord: (origin.batchNo - 1) * PAGE_SIZE_MAX + index + 1,
        item_id: item_key,
      }));
      // Who plans a window explicitly asks for all of it again.
      const skipsBadIds = context.plan_strategy !== "TIME";
      known = (await insertIds(tx, { ...origin, skipsBadIds }, ids)).known;
    }
    if (fetched.asked) {
      const unansweredIds = new Set(unanswered.map(({ item_id }) => item_id));
      const leftState = isRetry ? "MISSING" : "RETRY";
      await moveIds(
        tx,
        origin,
        asked.map(({ ord, item_id }) => ({ ord, state: unansweredIds.has(item_id) ? leftState : "DONE" })),
      );
      const reason = unansweredReason(walk);
      const badIds = missing.map(({ item_id }) => item_id);
      await addBadIds(tx, context.endpoint_id, badIds, { reason, days: BAD_ID_DAYS });
    }
    const came = records.map(({ item_key }) => item_key);
    if (alone !== null && records.length > 0) came.push(alone);
    const news = await quarantineIn(tx, walk, origin, quarantined, came);
    await body?.commitIn(tx);
    const all = {
      ...written,
      received: fetched.received,
      quarantined: fetched.quarantined,
      missing: missing.length + known,
    };
    const event = {
      planId: context.plan_id,
      sliceId: context.slice_id,
      generation: walk.generation,
      batchNo: origin.batchNo,
      source: context.provenance_code,
      endpoint: context.endpoint_name,
      operation: context.operation_code,
      ...all,
    };
    // A check that changes nothing is nobody's news.
    const hasNews = !isUpdate(walk) || written.inserted + written.updated + written.deleted + news > 0;
    if (hasNews) await deps.outbox.emit(tx, [batchCommitted(deps.ids.uuid(), event, deps.clock.now())]);
    const isThere = await commitBatch(tx, {
      ...origin,
      runId: context.run_id,
      taskId: context.task_id,
      planId: context.plan_id,
      exprHash: context.expr_hash,
      phase: fetched.phase,
      pageNo: fetched.before.pageNo,
      pageSize: endpoint.spec.pagination.pageSize,
      beforeToken: fetched.before.token ?? null,
      afterToken: fetched.page.nextToken ?? null,
      nextUrl: fetched.page.nextUrl ?? null,
      request: exchange.request,
      responseDigest: digestOf(fetched),
      stats: {
        ...all,
        items: fetched.page.items.length,
        latencyMs: Math.round(exchange.latencyMs),
        retries: exchange.attempts - 1,
      },
      credentialVersion: exchange.credentialVersion,
      bodyHash: body?.hash ?? null,
      idHashes: fetched.hashes,
      counts: all,
      expected: walk.expected ?? null,
      position: fetched.next,
    });
    if (!isThere) throw new LeaseLost();
    // Ids alone say nothing of the endpoint that has the records.
    if (walk.isRefused && !isIdList) await accessGranted(tx, deps, event);
    return all;
  });

  if (!isIdList) walk.isRefused = false;
  walk.batchNo += 1;
  walk.position = fetched.next;
  walk.received += counts.received;
  walk.quarantined += counts.quarantined;
  walk.missing += counts.missing;
  walk.stats.pages += 1;
  walk.stats.records += records.length;
  measure(deps.metrics, walk, counts, exchange.latencyMs + performance.now() - startedMs);
}

/** Answers how many are new. An update repeats no reason that is known, and says which ids have come. */
async function quarantineIn(
  tx: Tx,
  walk: Walk,
  origin: RecordOrigin,
  items: readonly Quarantined[],
  came: readonly string[],
): Promise<number> {
  const { expr_proto_hash } = walk.task.context;
  if (!isUpdate(walk)) {
    await quarantine(tx, origin, expr_proto_hash, items);
    return items.length;
  }
  await resolveQuarantined(tx, origin.endpointId, came);
  const news = await newlyQuarantined(tx, origin, expr_proto_hash, items);
  await quarantine(tx, origin, expr_proto_hash, news);
  return news.length;
}

async function putInStatements(
  records: readonly IncomingRecord[],
  size: number,
  put: (some: readonly IncomingRecord[]) => ReturnType<typeof putRecords>,
): ReturnType<typeof putRecords> {
  const sum = { inserted: 0, updated: 0, unchanged: 0, deleted: 0 };
  // In the order of keys over all statements, as within each, so that two pages with common keys do not deadlock.
  const ordered = records.length > size ? records.toSorted((a, b) => (a.item_key < b.item_key ? -1 : 1)) : records;
  for (let start = 0; start < ordered.length; start += size) {
    const counts = await put(ordered.slice(start, start + size));
    sum.inserted += counts.inserted;
    sum.updated += counts.updated;
    sum.unchanged += counts.unchanged;
    sum.deleted += counts.deleted;
  }
  return sum;
}

/** A record that a source no longer answers is missing, not deleted: sources say themselves what they delete. */
function unansweredReason(walk: Walk): string {
  return isUpdate(walk)
    ? "the source does not answer this id; a record that is there stays as it is"
    : "the source lists this id but does not answer it";
}

function missingId(id: string, reason: string): Quarantined {
  return {
    item_key: id,
    reason_code: "MISSING_ID",
    reason,
    expression: null,
    fragment: JSON.stringify(id),
  };
}

/** The headers that a person needs to understand a throttled or rejected request. */
const KEPT_HEADERS = /^(content-type|retry-after|date|x-rate-?limit.*|x-concurrency.*|x-api-pool)$/;

function digestOf({ exchange, page }: FetchedPage): object {
  const headers = Object.fromEntries(Object.entries(exchange.headers).filter(([name]) => KEPT_HEADERS.test(name)));
  return {
    status: exchange.status,
    headers,
    bytes: exchange.body.length,
    total: page.total ?? null,
    warnings: page.warnings,
    rate: { waitMs: Math.round(exchange.waitedMs), ratePerSec: exchange.ratePerSec },
  };
}

function measure(
  metrics: HarvestMetrics,
  { task: { context } }: Walk,
  counts: { inserted: number; updated: number; unchanged: number; deleted: number; quarantined: number },
  latencyMs: number,
): void {
  const labels = { source: context.provenance_code, endpoint: context.endpoint_name, op: context.operation_code };
  metrics.count("patra_ingest_batches_total", labels);
  metrics.observe("patra_ingest_batch_latency_ms", labels, latencyMs);
  const actions = {
    insert: counts.inserted,
    update: counts.updated,
    skip: counts.unchanged,
    delete: counts.deleted,
    quarantine: counts.quarantined,
  };
  for (const [action, count] of Object.entries(actions)) {
    if (count > 0) metrics.count("patra_ingest_items_total", { ...labels, action }, count);
  }
}
