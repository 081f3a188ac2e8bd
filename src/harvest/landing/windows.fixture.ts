/** A source whose slices a test fills and ends by hand, for tests of what lands. */
import { createHash, randomUUID } from "node:crypto";
import type { TestDatabase } from "../../../test/database.ts";
import type { Tx } from "../../kernel/data/db.ts";
import type { OutputField } from "../definition/policy.ts";
import { type Operation, PRIORITIES, type Snapshot } from "../spec/snapshot.ts";
import { type LandingWindow, wantLanding } from "../store/records/landing.ts";
import { putRecords } from "../store/records/records.ts";

export const DAY = "20260801";
export const FIELDS: OutputField[] = [
  { name: "title", path: "$.title[0]", type: "string", required: false },
  { name: "cited", path: "$.counts.cited", type: "integer", required: false },
];

export interface TestRecord {
  key: string;
  title: string;
  cited?: number;
  deleted?: boolean;
}

export interface TestSlice {
  sliceId: string;
  planId: string;
  from: Date;
  to: Date;
}

export type TestSource = Awaited<ReturnType<typeof makeSource>>;

const PLAN_MONTH = "2026-08-01";
let sources = 0;

/** An instant of the first days of August 2026: `at(1)` is the start of the first. */
export const at = (day: number, hour = 0) => new Date(Date.UTC(2026, 7, day, hour));

export async function makeSource(
  database: TestDatabase,
  {
    table = "crossref_works",
    fields = FIELDS,
    engine,
  }: { table?: string; fields?: OutputField[]; engine?: string } = {},
) {
  sources += 1;
  const source = `source${sources}`;
  await database.query(
    "insert into harvest.reg_provenance (provenance_code, name, base_url, updated_by) values ($1, $1, 'https://api.example.org', 'test')",
    [source],
  );
  const [endpoint] = await database.query<{ id: number }>(
    `insert into harvest.reg_prov_endpoint_def (provenance_code, endpoint_name, role_code, http_method, path_template)
     values ($1, 'works', 'SEARCH', 'GET', '/works') returning endpoint_id as id`,
    [source],
  );
  const endpointId = endpoint?.id ?? 0;
  let plans = 0;
  let slices = 0;

  /** A plan, with a snapshot of its own. */
  async function plan(outputFields = fields, operation: Operation = "HARVEST"): Promise<string> {
    plans += 1;
    const [planId, triggerId, fingerprint] = [randomUUID(), randomUUID(), `${source} ${plans}`];
    const http = { baseUrl: "https://api.example.org/v1/", path: "/works" };
    const spec = { http, outputFields, window: { timezone: "UTC" }, landing: { table, grain: "day", engine } };
    const snapshot = { provenanceCode: source, endpointName: "works", spec } as unknown as Snapshot;
    await database.query("insert into harvest.snapshot (spec_fingerprint, snapshot, origins) values ($1, $2, '{}')", [
      fingerprint,
      JSON.stringify(snapshot),
    ]);
    await database.query(
      `insert into harvest.ing_schedule_instance (schedule_instance_id, scheduler_code, provenance_code, endpoint_name,
         operation_code, trigger_type_code, trigger_params, created_by)
       values ($1, 'test', $2, 'works', $3, 'MANUAL', '{}', 'test')`,
      [triggerId, source, operation],
    );
    await database.query(
      `insert into harvest.ing_plan (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code,
         plan_strategy, spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority, planned_at, plan_month,
         status_code)
       values ($1, $2, $3, $4, 'works', $7, 'TIME', $5, '', 'EXPR', 'works', $8, now(), $6, 'READY')`,
      [planId, triggerId, source, endpointId, fingerprint, PLAN_MONTH, operation, PRIORITIES[operation]],
    );
    return planId;
  }

  async function slice(planId: string, from: Date, to: Date, namespace = "works"): Promise<TestSlice> {
    slices += 1;
    const [row] = await database.query<{ id: string }>(
      `insert into harvest.ing_plan_slice (plan_id, slice_no, provenance_code, endpoint_id, operation_code, namespace_scope_code,
         namespace_key, window_from, window_to, slice_spec, slice_signature_hash, expr_hash, expr_snapshot, status_code)
       values ($1, $2, $3, $4, 'HARVEST', 'EXPR', $5, $6, $7, '{}', $8, '', '{}', 'READY') returning slice_id::text as id`,
      [planId, slices, source, endpointId, namespace, from, to, String(slices)],
    );
    return { sliceId: row?.id ?? "", planId, from, to };
  }

  let batches = 0;
  /** Commits a page of the slice. */
  async function page({ sliceId, planId }: TestSlice, records: readonly TestRecord[]): Promise<void> {
    batches += 1;
    await database.query("update harvest.ing_plan_slice set inserted = inserted + $2 where slice_id = $1", [
      sliceId,
      records.length,
    ]);
    await database.db.tx(async (tx) => {
      const origin = { endpointId, planMonth: PLAN_MONTH, sliceId, generation: 1, batchNo: batches };
      await putRecords(tx, origin, records.map(incoming));
      await tx.rows(
        {
          name: `test.batch.${source}`,
          text: `insert into harvest.ing_task_run_batch (plan_month, slice_id, generation, batch_no, run_id, task_id, plan_id,
                   endpoint_id, expr_hash, phase, request, response_digest, stats, id_hashes)
                 values ($1, $2, 1, $3, 1, 1, $4, $5, '', 1, '{}', '{}', '{}', $6)`,
        },
        [PLAN_MONTH, sliceId, batches, planId, endpointId, Buffer.alloc(8 * records.length)],
      );
    });
  }

  async function end(tx: Tx, { sliceId }: TestSlice, status = "COMPLETE"): Promise<void> {
    await tx.rows(
      {
        name: "test.slice.end",
        text: "update harvest.ing_plan_slice set status_code = $2, reason = 'a reason', ended_at = now() where slice_id = $1",
      },
      [sliceId, status],
    );
  }

  function window(planId: string, day = 1): LandingWindow {
    return {
      endpoint_id: endpointId,
      op_time: `2026080${day}`,
      table_name: table,
      window_from: at(day),
      window_to: at(day + 1),
      plan_id: planId,
    };
  }

  return {
    source,
    endpointId,
    plan,
    slice,
    page,
    end,
    window,
    /** Ends the slice, and asks for the landing of its day as the executor does. Answers whether the day wants to land. */
    complete: (ended: TestSlice, status = "COMPLETE") =>
      database.db.tx(async (tx) => {
        await end(tx, ended, status);
        return (await wantLanding(tx, [window(ended.planId, ended.from.getUTCDate())])) > 0;
      }),
    /** A whole day in one slice, complete. */
    async harvest(records: readonly TestRecord[], day = 1, outputFields = fields): Promise<TestSlice> {
      const made = await slice(await plan(outputFields), at(day), at(day + 1));
      if (records.length > 0) await page(made, records);
      await this.complete(made);
      return made;
    },
    async landing(opTime = DAY): Promise<Record<string, unknown>> {
      const [row] = await database.query<Record<string, unknown>>(
        `select status_code as status, wanted::int, landed::int, rows::int, attempt, last_error as error from harvest.landing
         where endpoint_id = $1 and op_time = $2`,
        [endpointId, opTime],
      );
      return row ?? {};
    },
  };
}

function incoming({ key, title, cited, deleted = false }: TestRecord) {
  const data = JSON.stringify({ title: [title], counts: { cited } });
  return {
    item_key: key,
    content_hash: createHash("md5").update(data).digest("hex"),
    source_time: null,
    provider_version: null,
    deleted,
    data,
  };
}
