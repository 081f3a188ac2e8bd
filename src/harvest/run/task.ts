/** A task as it runs: what was claimed, its slice, and the compiled source. */
import type { CountedPart } from "../slice/divide.ts";
import type { TaskContext } from "../store/queue/tasks.ts";
import type { CompiledSource } from "./compiled.ts";

export interface PreparedTask {
  task_id: string;
  fence: string;
  context: TaskContext;
  source: CompiledSource;
}

/** How the run of a slice ended. */
export type SliceEnd =
  | { kind: "complete" }
  | { kind: "incomplete"; reason: string }
  /** `isRefused`: access is refused (level L4), so other slices of its endpoint would fail as well. */
  | { kind: "failed"; reason: string; isRefused?: boolean }
  /** Its window has more records than one query answers: two slices take its place. */
  | { kind: "split"; reason: string; at: Date; total?: number | undefined }
  /** It cannot be cut in time: these parts take its place, and have to add up to `total`. */
  | { kind: "parts"; reason: string; total: number; parts: readonly CountedPart[] }
  | Later;

/** It goes on later, from where it is. */
interface Later {
  kind: "later";
  reason: string;
  delayMs: number;
  /** The gate that it waits for. */
  gate?: string;
  /** No request was under way, so a token that can be used once is not lost. */
  isClean: boolean;
  /** This run and those before it that failed in a row; unset if it did not fail. */
  failedTries?: number;
}
