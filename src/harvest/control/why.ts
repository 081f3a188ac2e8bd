/** Why a slice does not finish: what holds it up now, the deciding cause first. */
import type { Db } from "../../kernel/data/db.ts";
import { counted } from "../../kernel/text/sentences.ts";
import type { SliceDetail } from "../plan/reads.ts";
import { shownPart } from "../slice/parts.ts";
import { findSlice, type SliceRow } from "../store/plans/plan-reads.ts";
import { AHEAD_MAX, partsOf, taskOfSlice, type WhyTask } from "../store/queue/why.ts";

export const WHY_CODES = [
  "COMPLETE",
  "INCOMPLETE",
  "FAILED",
  "CANCELLED",
  "SPLIT",
  "DIVIDED",
  "RUNNING",
  "PAUSED",
  "NO_WORKER",
  "GATE",
  "SOURCE_DOWN",
  "BACK_OFF",
  "HARVEST_FIRST",
  "CONCURRENCY",
  "QUEUE",
] as const;

export interface Cause {
  code: (typeof WHY_CODES)[number];
  sentence: string;
  since: Date | null;
  /** When it ends, where that is known. */
  until: Date | null;
}

export interface Why {
  slice: SliceRow;
  causes: Cause[];
}

export async function whySlice(db: Db, planId: string, { slice }: Pick<SliceDetail, "slice">): Promise<Why> {
  return { slice, causes: await causesOf(db, planId, slice) };
}

async function causesOf(db: Db, planId: string, slice: SliceRow): Promise<Cause[]> {
  const ended = (code: Cause["code"], sentence: string): Cause[] => [
    { code, sentence, since: slice.ended_at, until: null },
  ];
  switch (slice.status_code) {
    case "COMPLETE":
      return ended("COMPLETE", `It is complete: ${counted(slice.received, "record")} came.`);
    case "FAILED":
    case "INCOMPLETE":
      return ended(slice.status_code, `It ended ${slice.status_code}: ${slice.reason}.${acceptedText(slice)}`);
    case "CANCELLED":
      return ended(
        "CANCELLED",
        slice.reason === null ? "Its plan was cancelled." : `It was ${slice.reason}.${acceptedText(slice)}`,
      );
    case "SPLIT": {
      const { state, next, causes } = await partsText(db, planId, slice);
      return [...ended("SPLIT", `It was split (${slice.reason}): ${state}.${next}`), ...causes];
    }
    case "READY": {
      const task = await taskOfSlice(db, slice.slice_id);
      if (task?.status_code === "QUEUED" || task?.status_code === "EXECUTING") return causesOfTask(task, slice);
      // It is divided, and ends with the last of its parts.
      const { state, next, causes } = await partsText(db, planId, slice);
      return [{ code: "DIVIDED", sentence: `It is divided: ${state}.${next}`, since: null, until: null }, ...causes];
    }
  }
}

function acceptedText({ accepted_by }: SliceRow): string {
  return accepted_by === null ? "" : ` ${accepted_by} has accepted the gap.`;
}

/** How many parts are open, and what holds the first of them up, with its parts in turn. */
async function partsText(
  db: Db,
  planId: string,
  { slice_id }: SliceRow,
): Promise<{ state: string; next: string; causes: Cause[] }> {
  const { open, gaps, parts, first } = await partsOf(db, planId, slice_id);
  const state = `${open} of ${counted(parts, "part")} ${open === 1 ? "is" : "are"} open, ${gaps} ended with a gap`;
  const slice = first === null ? undefined : await findSlice(db, planId, first);
  if (!slice) return { state, next: "", causes: [] };
  const what = slice.part === null ? "" : ` (${shownPart(slice.part)})`;
  const causes = await causesOf(db, planId, slice);
  return {
    state,
    next: ` Ask for slice ${first}.`,
    causes: causes.map((cause) => ({ ...cause, sentence: ofSlice(`Slice ${first}${what}`, cause.sentence) })),
  };
}

/** A sentence about a slice inside of one about another. What names a slice already is about a part of that one. */
function ofSlice(name: string, sentence: string): string {
  return sentence.startsWith("Slice ") ? sentence : `${name}: ${sentence}`;
}

function causesOfTask(task: WhyTask, slice: SliceRow): Cause[] {
  const cause = (
    code: Cause["code"],
    sentence: string,
    since: Date | null = null,
    until: Date | null = null,
  ): Cause => ({
    code,
    sentence,
    since,
    until,
  });
  if (task.status_code === "EXECUTING") {
    const total = slice.expected === null ? "" : ` of ${slice.expected.toLocaleString("en-US")}`;
    const came = `${slice.received.toLocaleString("en-US")}${total} records in ${counted(slice.batches, "page")}`;
    const where = task.process === null ? "" : ` in ${task.process}`;
    const stop = task.pause === null ? [] : [cause("PAUSED", `${task.pause}; it stops after this page.`)];
    return [cause("RUNNING", `It runs${where}, attempt ${task.attempt_count}: ${came} so far.`, task.run_at), ...stop];
  }
  const causes: Cause[] = [];
  if (task.pause !== null) causes.push(cause("PAUSED", `${task.pause}.`));
  if (!task.has_worker) {
    causes.push(cause("NO_WORKER", "No process with the role `worker` is alive: start one with `millrace serve`."));
  }
  if (!task.is_due) causes.push(waitOf(task, cause));
  else if (task.is_after_harvest) {
    causes.push(cause("HARVEST_FIRST", `A harvest of ${task.provenance_code} runs or is due, and goes first.`));
  } else if (task.running >= (task.concurrency ?? 0)) {
    const run = task.running === 1 ? "runs" : "run";
    const why = task.is_refused
      ? "the others follow when its source grants access"
      : "as many as may at once (`budget.concurrency`)";
    const sentence = `${counted(task.running, "task")} of ${task.partition_key} ${run}, ${why}.`;
    causes.push(cause("CONCURRENCY", sentence));
  }
  if (task.is_due) {
    const ahead =
      task.ahead >= AHEAD_MAX ? `at least ${AHEAD_MAX.toLocaleString("en-US")} tasks` : counted(task.ahead, "task");
    const go = task.ahead === 1 ? "goes" : "go";
    causes.push(cause("QUEUE", `It is due, and ${ahead} of ${task.partition_key} ${go} before it.`));
  }
  if (task.lost_count > 0) {
    const sentence = `${counted(task.lost_count, "process", "processes")} in a row ${task.lost_count === 1 ? "was" : "were"} lost while executing it.`;
    causes.push(cause("BACK_OFF", sentence));
  }
  return causes;
}

function waitOf(
  { wait_gate, wait_reason, failed_tries, failing_since, scheduled_at }: WhyTask,
  cause: (code: Cause["code"], sentence: string, since?: Date | null, until?: Date | null) => Cause,
): Cause {
  const reason = wait_reason ?? "it was put off";
  if (wait_gate !== null) return cause("GATE", `Waiting for rate gate ${wait_gate}: ${reason}.`, null, scheduled_at);
  if (failed_tries > 0) return cause("SOURCE_DOWN", `${reason}.`, failing_since, scheduled_at);
  return cause("BACK_OFF", `${reason}.`, null, scheduled_at);
}
