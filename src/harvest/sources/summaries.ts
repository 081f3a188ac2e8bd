/** Sources as a list shows them: how the last plan went, how far the watermark is, what holds it up. */
import type { Db } from "../../kernel/data/db.ts";
import type { GateRow } from "../../kernel/gate/declaration-store.ts";
import type { Gates } from "../../kernel/gate/gates.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import { closedUntil } from "../plan/window.ts";
import { gatesOfSnapshot } from "../spec/gates.ts";
import { missingWindows } from "../store/sources/health.ts";
import * as store from "../store/sources/source-reads.ts";

export interface Watermark {
  namespace: string;
  at: Date;
  closedUntil: Date;
  lagSeconds: number;
}

export interface Summary {
  row: store.SummaryRow;
  /** Windows that nothing has completed. */
  missing: number;
  /** That of the endpoint that is furthest behind. */
  watermark: Watermark | null;
  gates: GateRow[];
}

export interface SummaryDeps {
  db: Db;
  clock: Clock;
  gates: Pick<Gates, "describe">;
}

const ENDPOINTS_MAX = 5_000;

export async function readSummaries(
  deps: SummaryDeps,
  filter: store.SummaryFilter,
  page: { size: number; offset: number },
): Promise<{ items: Summary[]; total: number }> {
  const { db, clock } = deps;
  const { rows, total } = await store.listSummaries(db, filter, page);
  const names = rows.map(({ provenance_code }) => provenance_code);
  if (names.length === 0) return { items: [], total };
  const [marks, gates, missing] = await Promise.all([
    store.watermarksOf(db, names, ENDPOINTS_MAX),
    readGates(deps, names),
    missingWindows(db),
  ]);
  const now = new Date(clock.now());
  const items = rows.map((row) => ({
    row,
    missing: missing.filter(({ provenance_code }) => provenance_code === row.provenance_code).length,
    watermark: furthestBehind(
      marks.filter(({ provenance_code }) => provenance_code === row.provenance_code),
      now,
    ),
    gates: gates.get(row.provenance_code) ?? [],
  }));
  return { items, total };
}

function furthestBehind(rows: readonly store.WatermarkRow[], now: Date): Watermark | null {
  const measured = rows.flatMap(({ namespace_key: namespace, normalized_instant: at, window }): Watermark[] => {
    if (!window) return [];
    const closed = closedUntil(window, now);
    const lagSeconds = Math.max(0, Math.round((closed.getTime() - at.getTime()) / 1_000));
    return [{ namespace, at, closedUntil: closed, lagSeconds }];
  });
  return measured.toSorted((a, b) => b.lagSeconds - a.lagSeconds)[0] ?? null;
}

/** The gates that the newest plans of each source pass, as they are now. One that was never used is not there yet. */
async function readGates(
  { db, gates }: Pick<SummaryDeps, "db" | "gates">,
  sources: readonly string[],
): Promise<Map<string, GateRow[]>> {
  const limits = await store.limitsOf(db, sources, ENDPOINTS_MAX);
  const keys = new Map<string, Set<string>>();
  for (const { provenance_code, list, detail } of limits) {
    const own = keys.get(provenance_code) ?? new Set<string>();
    keys.set(provenance_code, own);
    const snapshot = { spec: { rateLimit: list }, ...(detail ? { detail: { rateLimit: detail } } : {}) };
    for (const { key } of gatesOfSnapshot(snapshot)) own.add(key);
  }
  const rows = await gates.describe([...new Set([...keys.values()].flatMap((own) => [...own]))]);
  return new Map([...keys].map(([source, own]) => [source, rows.filter(({ key }) => own.has(key))]));
}

/** The gates of one source, with the number of tasks that wait for each. */
export async function readWaitedGates(
  deps: Pick<SummaryDeps, "db" | "gates">,
  source: string,
): Promise<{ row: GateRow; waiting: number }[]> {
  const rows = (await readGates(deps, [source])).get(source) ?? [];
  const waiting = await store.waitingForGates(
    deps.db,
    rows.map(({ key }) => key),
  );
  return rows.map((row) => ({ row, waiting: waiting.get(row.key) ?? 0 }));
}
