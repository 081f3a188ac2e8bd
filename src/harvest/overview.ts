/**
 * What harvest shows on the overview: endpoints that are paused because access was denied, missing windows, tasks that wait, how each
 * source responds, and the lag of each cursor.
 */
import type { Db } from "../kernel/data/db.ts";
import {
  ENTRIES_MAX,
  type Lag,
  NEEDED_DAYS,
  type Need,
  type OverviewPart,
  type SourceHealth,
} from "../kernel/overview/part.ts";
import type { Range } from "../kernel/overview/range.ts";
import { waitingOf } from "../kernel/overview/waiting-rows.ts";
import type { Clock } from "../kernel/time/clock.ts";
import { resumeCommand } from "./control/pause-text.ts";
import { behindOf, reachText } from "./health.ts";
import { lagSecondsOf } from "./plan/reads.ts";
import { closedUntil } from "./plan/window.ts";
import { type CursorRow, listCursors } from "./store/cursors/cursor-reads.ts";
import { automaticPauses, type PauseRow } from "./store/queue/pauses.ts";
import {
  type FailedPlan,
  failedPlans,
  type MissingWindow,
  missingWindows,
  type ScheduleHealth,
  scheduleHealth,
} from "./store/sources/health.ts";
import {
  type AdvanceRow,
  advancesOf,
  endedPlans,
  type SourceRow,
  sourcesNow,
  waitingTasks,
} from "./store/sources/overview.ts";

const CURSORS_MAX = 1_000;
/** Lines in the plot of lags: those that are the farthest behind. */
const LAGS_MAX = 6;
/** The cursors of BACKFILL and UPDATE go their own way: how far a source is behind is what HARVEST has not reached. */
const OF_HARVEST = { source: undefined, operation: "HARVEST" };

export function createOverview({ clock }: { clock: Clock }): OverviewPart {
  const lagNow = (cursor: CursorRow) =>
    lagSecondsOf(cursor, cursor.window && closedUntil(cursor.window, new Date(clock.now())));

  async function lagsIn(db: Db, range: Range): Promise<Lag[]> {
    const cursors = (await listCursors(db, OF_HARVEST, CURSORS_MAX))
      .filter((cursor) => cursor.window !== null && cursor.normalized_instant !== null)
      .sort((a, b) => (lagNow(b) ?? 0) - (lagNow(a) ?? 0))
      .slice(0, LAGS_MAX);
    const advances = await advancesOf(db, cursors, range.from);
    return cursors.map((cursor, index) => ({
      about: { kind: "source", id: cursor.provenance_code },
      name: `${cursor.provenance_code}/${cursor.namespace_key}`,
      seconds: lagOver(
        cursor,
        advances.filter((one) => one.cursor === index + 1),
        range,
      ),
    }));
  }

  return {
    scope: "harvest:read",
    checkedKinds: ["source", "cursor"],
    async now(db) {
      const missing = await missingWindows(db);
      const [refused, failed, schedules, waiting, sources, cursors] = await Promise.all([
        automaticPauses(db, ENTRIES_MAX),
        failedPlans(db, missing, NEEDED_DAYS),
        scheduleHealth(db),
        waitingTasks(db),
        sourcesNow(db),
        listCursors(db, OF_HARVEST, CURSORS_MAX),
      ]);
      return {
        needs: [
          ...refused.map(refusedNeed),
          ...needsOf(missing, schedules),
          ...failuresOf(failed.filter((plan) => plan.is_unsliced)),
        ],
        waiting: waitingOf(waiting),
        sources: sources.map((row) => {
          const lags = cursors.filter(({ provenance_code }) => provenance_code === row.source).map(lagNow);
          return healthOf(row, lags);
        }),
      };
    },
    failures: {
      command: "millrace harvest status --status failed",
      of: async (db) => {
        const failed = await failedPlans(db, await missingWindows(db), NEEDED_DAYS);
        return failuresOf(failed.filter((plan) => !plan.is_unsliced));
      },
    },
    activity: async (db, range) => {
      const [ended, lags] = await Promise.all([endedPlans(db, range), lagsIn(db, range)]);
      return { ended: [ended], lags };
    },
  };
}

function refusedNeed(pause: PauseRow & { endpoint_name: string }): Need {
  const { provenance_code: source, endpoint_name: endpoint, paused_by, reason, paused_at: at } = pause;
  const text = `Paused by ${paused_by}: ${reason}. When the reason is removed: \`${resumeCommand(pause)}\`.`;
  return {
    about: { kind: "source", id: source },
    state: "failed",
    title: `${source}/${endpoint}`,
    reason: text,
    count: 1,
    at,
  };
}

/** One entry for each namespace. The newest plan comes first. */
function failuresOf(plans: readonly FailedPlan[]): Need[] {
  const needs = new Map<string, Need>();
  for (const { plan_id: id, provenance_code, namespace_key, reason, ended_at: at } of plans) {
    const title = `${provenance_code}/${namespace_key}`;
    const known = needs.get(title);
    if (known) known.count += 1;
    else needs.set(title, { about: { kind: "plan", id }, state: "failed", title, reason, count: 1, at });
  }
  return [...needs.values()];
}

/** Missing windows, refused schedules and late ones are limited apart, so that none hides another. */
export function needsOf(missing: readonly MissingWindow[], schedules: readonly ScheduleHealth[]): Need[] {
  const refused = schedules.flatMap(({ provenance_code, schedule_name, refused: reason }): Need[] => {
    const title = `${provenance_code}, schedule ${schedule_name}`;
    const about = { kind: "source", id: provenance_code };
    return reason === null ? [] : [{ about, state: "failed", title, reason, count: 1, at: null }];
  });
  const late = behindOf(missing, schedules).map(
    (schedule): Need => ({
      about: { kind: "source", id: schedule.provenance_code },
      state: "late",
      title: `${schedule.provenance_code}/${schedule.namespace_key}`,
      reason: `It ${reachText(schedule)}, which is behind its schedule ${schedule.schedule_name}.`,
      count: 1,
      at: schedule.planned_at,
    }),
  );
  return [missingNeeds(missing), refused, late].flatMap((some) => some.slice(0, ENTRIES_MAX));
}

/**
 * One entry for each namespace, with the first window that is missing: the watermark does not pass it. Its time is that of the
 * newest failure, not of the data, which may be of years ago. The newest first.
 */
function missingNeeds(missing: readonly MissingWindow[]): Need[] {
  const needs = new Map<string, Need & { at: Date }>();
  for (const { provenance_code, namespace_key, window_from, window_to, reason, ended_at } of missing) {
    const title = `${provenance_code}/${namespace_key}`;
    const known = needs.get(title);
    if (known) {
      known.count += 1;
      if (ended_at > known.at) known.at = ended_at;
    } else {
      const window = window_from && window_to ? `${timeText(window_from)} to ${timeText(window_to)}: ` : "";
      const about = { kind: "cursor", id: title };
      needs.set(title, { about, state: "failed", title, reason: `${window}${reason}`, count: 1, at: ended_at });
    }
  }
  return [...needs.values()].sort((a, b) => b.at.getTime() - a.at.getTime());
}

function timeText(at: Date): string {
  return at.toISOString().replace(/(?:T00:00:00)?\.000Z$/, (end) => (end.startsWith("T") ? "" : "Z"));
}

const FAILING_SHARE = 0.5;
const THROTTLED_SHARE = 0.3;
/** Shorter waits for a permit hold nobody back, whatever their share. */
const THROTTLED_MS = 50;
const SLOW_FACTOR = 2;
/** Below this no source is slow, whatever it usually takes. */
const SLOW_MS = 500;

/** Whether a source is slow, or we wait for permits: by where the time of its requests went. */
export function healthOf(row: SourceRow, lags: readonly (number | null)[]): SourceHealth {
  const { requests, failed, wait_ms, answer_ms, usual_requests, usual_answer_ms, held_back, is_refused } = row;
  // The parts overlap a little, because a page is asked for while the one before it is stored.
  const wholeMs = Math.max(row.busy_ms, wait_ms + answer_ms);
  const waitShare = wholeMs > 0 ? wait_ms / wholeMs : null;
  const answerMs = requests > 0 ? answer_ms / requests : null;
  const usualMs = usual_requests > 0 ? usual_answer_ms / usual_requests : null;
  const isHeldUp = (waitShare ?? 0) >= THROTTLED_SHARE && wait_ms >= THROTTLED_MS * requests;
  const known = lags.filter((seconds) => seconds !== null);
  const isSlow = answerMs !== null && usualMs !== null && answerMs >= SLOW_MS && answerMs >= SLOW_FACTOR * usualMs;
  const state =
    is_refused || (requests > 0 && failed / requests >= FAILING_SHARE)
      ? "failing"
      : held_back > 0 || isHeldUp
        ? "throttled"
        : isSlow
          ? "slow"
          : requests === 0
            ? "idle"
            : "ok";
  return {
    source: row.source,
    name: row.name,
    state,
    requests,
    failedRequests: failed,
    waitShare,
    answerShare: wholeMs > 0 ? answer_ms / wholeMs : null,
    gate: row.held_by ?? row.slowest_gate,
    heldBack: held_back,
    accessRefused: is_refused,
    refusals: row.refusals,
    answerMs,
    usualAnswerMs: usualMs,
    lagSeconds: known.length > 0 ? Math.max(...known) : null,
    lastSuccessAt: row.last_success_at,
  };
}

/** At the end of each bucket: from where the cursor was then to what could be harvested by then. */
export function lagOver(
  cursor: Pick<CursorRow, "window" | "normalized_instant">,
  advances: readonly Pick<AdvanceRow, "created_at" | "prev_instant" | "new_instant">[],
  { from, to, bucketMs, buckets }: Range,
): (number | null)[] {
  const { window } = cursor;
  if (!window) return [];
  let next = 0;
  let at = advances[0] ? advances[0].prev_instant : cursor.normalized_instant;
  return Array.from({ length: buckets }, (_, bucket) => {
    const end = new Date(Math.min(from.getTime() + (bucket + 1) * bucketMs, to.getTime()));
    for (let one = advances[next]; one && one.created_at <= end; one = advances[next]) {
      at = one.new_instant;
      next += 1;
    }
    return at && Math.max(0, Math.round((closedUntil(window, end).getTime() - at.getTime()) / 1_000));
  });
}
