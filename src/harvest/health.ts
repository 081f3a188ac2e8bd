/** What holds a source back: windows that are missing, watermarks that lag, schedules that make no plans. For the doctor and the metrics. */
import type { Db } from "../kernel/data/db.ts";
import type { DoctorCheck } from "../kernel/doctor.ts";
import { counted } from "../kernel/text/sentences.ts";
import type { Clock } from "../kernel/time/clock.ts";
import type { ServiceLog } from "../kernel/work/service.ts";
import type { HarvestMetrics } from "./catalogue.ts";
import { closedFor, lagSecondsOf } from "./plan/reads.ts";
import { closedUntil } from "./plan/window.ts";
import { listCursors } from "./store/cursors/cursor-reads.ts";
import { type MissingWindow, missingWindows, type ScheduleHealth, scheduleHealth } from "./store/sources/health.ts";

/** Of each kind of finding. */
const NAMED_MAX = 3;

export const harvestCheck: DoctorCheck = {
  name: "harvest",
  async look(db) {
    const [missing, schedules] = await Promise.all([missingWindows(db), scheduleHealth(db)]);
    const refused = schedules.filter((schedule) => schedule.refused !== null);
    const behind = behindOf(missing, schedules);
    const found = [
      missing.length === 0 ? "" : `Missing: ${counted(missing.length, "window")}. ${named(missing, missingText)}`,
      behind.length === 0 ? "" : `Behind their schedules: ${named(behind, behindText)}`,
      refused.length === 0 ? "" : `Schedules that make no plan: ${named(refused, refusedText)}`,
    ].filter((sentence) => sentence !== "");
    if (found.length === 0) return { verdict: "ok", found: "No window of a source is missing." };
    const commands = [...missing, ...behind].slice(0, NAMED_MAX).map((one) => `\`${commandFor(one)}\``);
    const advice = [
      missing.length === 0
        ? ""
        : "The watermark does not pass a missing window. Remove the reason, then harvest it again.",
      commands.length === 0 ? "" : `Run ${commands.join(", ")}.`,
      refused.length === 0 ? "" : "Fix the definition, and apply it with `millrace harvest apply FILE`.",
    ].filter((sentence) => sentence !== "");
    return { verdict: "warning", found: found.join(" "), advice: advice.join(" "), isListed: true };
  },
};

/** Schedules whose watermark is behind although no window is missing. */
export function behindOf(missing: readonly MissingWindow[], schedules: readonly ScheduleHealth[]): ScheduleHealth[] {
  const isMissing = new Set(missing.map(namespaceOf));
  return schedules.filter((schedule) => isBehind(schedule) && !isMissing.has(namespaceOf(schedule)));
}

type Namespace = Pick<MissingWindow, "provenance_code" | "operation_code"> & { namespace_key: string | null };

function namespaceOf({ provenance_code, operation_code, namespace_key }: Namespace): string {
  return `${provenance_code} ${operation_code} ${namespace_key}`;
}

/** The plan that it made last has ended, and the watermark has not come to what could be closed at that time. */
function isBehind({ operation_code, window, planned_at, watermark }: ScheduleHealth): boolean {
  if (operation_code !== "HARVEST" || !window || !planned_at) return false;
  return watermark === null || watermark < closedUntil(window, planned_at);
}

function named<Item>(items: readonly Item[], text: (item: Item) => string): string {
  const more = items.length > NAMED_MAX ? [`and ${items.length - NAMED_MAX} more`] : [];
  return `${[...items.slice(0, NAMED_MAX).map(text), ...more].join("; ")}.`;
}

function missingText({ status_code, reason, ...gap }: MissingWindow): string {
  return `${gap.provenance_code}/${gap.namespace_key}${windowText(gap)} is ${status_code}: ${reason}`;
}

function behindText(schedule: ScheduleHealth): string {
  const { provenance_code, namespace_key, schedule_name } = schedule;
  return `${provenance_code}/${namespace_key} (${schedule_name}) ${reachText(schedule)}`;
}

export function reachText({ watermark }: Pick<ScheduleHealth, "watermark">): string {
  return watermark === null ? "has no watermark" : `is harvested until ${timeText(watermark)}`;
}

function refusedText({ provenance_code, schedule_name, refused }: ScheduleHealth): string {
  return `${schedule_name} of ${provenance_code}: ${refused}`;
}

function windowText({ window_from: from, window_to: to }: Pick<MissingWindow, "window_from" | "window_to">): string {
  return from && to ? ` from ${timeText(from)} to ${timeText(to)}` : "";
}

function timeText(at: Date): string {
  return at.toISOString().replace(".000Z", "Z");
}

function commandFor(one: MissingWindow | ScheduleHealth): string {
  const { provenance_code: source, endpoint_name: endpoint, namespace_key } = one;
  const { from, to } = "window_from" in one ? { from: one.window_from, to: one.window_to } : { from: null, to: null };
  return [
    `millrace harvest run ${source} --endpoint ${endpoint}`,
    one.operation_code === "HARVEST" ? "" : `--operation ${one.operation_code}`,
    from && to ? `--from ${timeText(from)} --to ${timeText(to)}` : "",
    // The values are not in the namespace, only a hash of them.
    namespace_key === endpoint ? "" : "--param ...",
  ]
    .filter((word) => word !== "")
    .join(" ");
}

const MEASURE_EVERY_MS = 30_000;
const CURSORS_MAX = 1_000;

/** Gauges that are measured when they are read, but not at every reading, and never while nobody reads. */
export function measureHealth(deps: { db: Db; clock: Clock; metrics: HarvestMetrics; log: ServiceLog }): void {
  const { db, clock, metrics, log } = deps;
  let missing: MissingWindow[] = [];
  let cursors: Awaited<ReturnType<typeof listCursors>> = [];
  let measuredAtMs = Number.NEGATIVE_INFINITY;

  /** The reading does not wait: it shows what was measured before. */
  function measure(): void {
    if (clock.now() - measuredAtMs < MEASURE_EVERY_MS) return;
    measuredAtMs = clock.now();
    read().catch((err: unknown) => log.warn({ err }, "the gaps and watermarks of harvest could not be measured"));
  }

  async function read(): Promise<void> {
    const every = { source: undefined, operation: undefined };
    [missing, cursors] = await Promise.all([missingWindows(db), listCursors(db, every, CURSORS_MAX)]);
  }

  metrics.gauge("patra_ingest_missing_windows", () => {
    measure();
    const counts = new Map<string, { labels: ReturnType<typeof labelsOf>; value: number }>();
    // A source whose last gap was filled reports 0, not nothing.
    for (const cursor of cursors) counts.set(namespaceOf(cursor), { labels: labelsOf(cursor), value: 0 });
    for (const gap of missing) {
      const { labels, value } = counts.get(namespaceOf(gap)) ?? { labels: labelsOf(gap), value: 0 };
      counts.set(namespaceOf(gap), { labels, value: value + 1 });
    }
    return [...counts.values()];
  });
  metrics.gauge("patra_ingest_cursor_lag_seconds", () => {
    measure();
    const now = new Date(clock.now());
    return cursors.flatMap((cursor) => {
      const seconds = lagSecondsOf(cursor, closedFor(cursor, now));
      return seconds === null ? [] : [{ labels: labelsOf(cursor), value: seconds }];
    });
  });
}

function labelsOf({ provenance_code, operation_code, namespace_key }: Namespace) {
  return { source: provenance_code, endpoint: namespace_key ?? "", op: operation_code };
}
