/** What a comparison says in sentences. */
import { durationText } from "../../parts/times/durations.ts";
import type { ComparedNode, Comparison } from "../api.ts";
import { runNameOf } from "../names.ts";
import type { runWords } from "../run/words.ts";
import { tookMs } from "../states.ts";

type Texts = (typeof runWords)["en"];

/** Differences below this are noise. */
const NOTICED_MS = 50;

export function causeText(node: ComparedNode, text: Texts): string {
  const because = ownCause(node, text);
  const isBeside = !node.critical && node.differenceMs >= NOTICED_MS && node.now !== null && node.cause !== "same";
  return isBeside ? `${because} ${text.beside}` : because;
}

function ownCause({ cause, now, before, pool, waitsFor, type }: ComparedNode, text: Texts): string {
  const both = (of: "waitedMs" | "ranMs" | "pausedMs") =>
    [durationText(now?.[of] ?? 0), durationText(before?.[of] ?? 0)] as const;
  switch (cause) {
    case "added":
      return text.causeAdded;
    case "removed":
      return text.causeRemoved;
    case "not_run_before":
      return text.causeNotRunBefore;
    case "not_run_now":
      return text.causeNotRunNow;
    case "retried":
      return text.causeRetried(now?.attempts ?? 0, before?.attempts ?? 0);
    case "waited":
      if (waitsFor.length > 0) return text.causeWaitedTables(waitsFor.join(", "), ...both("waitedMs"));
      return pool === null ? text.causeWaited(...both("waitedMs")) : text.causeWaitedPool(pool, ...both("waitedMs"));
    case "paused":
      return text.causePaused(...both("pausedMs"));
    case "ran":
      return (type === "chain" || type === "map" ? text.causeRanRun : text.causeRan)(...both("ranMs"));
    case "same":
      return text.causeSame;
  }
}

/** How the runs differ, and which node is most of it, with its cause. */
export function summaryText({ run, with: other, nodes }: Comparison, now: number, text: Texts): string {
  if (!other) return "";
  const [took, before] = [tookMs(run, now) ?? 0, tookMs(other, now) ?? 0];
  const by = took - before;
  const texts = [durationText(took), durationText(before), runNameOf(other)] as const;
  const sentences: string[] = [];
  if (Math.abs(by) < NOTICED_MS) sentences.push(text.asFast(runNameOf(other), durationText(took)));
  else sentences.push((by > 0 ? text.slower : text.faster)(durationText(Math.abs(by)), ...texts));
  // What cost most is the first node, and what saved most the last one.
  const most = by > 0 ? nodes[0] : nodes.at(-1);
  const isMost = most?.critical && Math.abs(by) >= NOTICED_MS && most.differenceMs * Math.sign(by) >= NOTICED_MS;
  if (isMost) sentences.push(text.mostBy(most.nodeId, signed(most.differenceMs)), ownCause(most, text));
  const queuedMs = Date.parse(run.startedAt ?? run.createdAt) - Date.parse(run.createdAt);
  if (queuedMs >= QUEUED_SHOWN_MS) sentences.push(text.queued(durationText(queuedMs)));
  return sentences.join(" ");
}

/** A run that starts at once waits for less. */
const QUEUED_SHOWN_MS = 5_000;

export function signed(ms: number): string {
  if (Math.abs(ms) < 1) return "0 ms";
  return `${ms > 0 ? "+" : "−"}${durationText(Math.abs(ms))}`;
}
