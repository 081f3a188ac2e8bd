/** The shards of a file in one stage, by state, for its bar. */
import type { State } from "../parts/states/state.ts";
import { type FileSummary, STAGES, type Stage, type Status } from "./api.ts";

export interface StagePart {
  state: State;
  n: number;
}

export function countsIn({ stages }: Pick<FileSummary, "stages">, stage: Stage): Partial<Record<Status, number>> {
  return stages[stage.replace("-", "_")] ?? {};
}

/** Without those that there are none of. Only as many wait for a stage as are done in the one before; the others have not reached it. */
export function partsOf(file: Pick<FileSummary, "stages">, stage: Stage): StagePart[] {
  const { done = 0, started = 0, failed = 0, new: fresh = 0 } = countsIn(file, stage);
  const before = STAGES[STAGES.indexOf(stage) - 1];
  const arrived = before === undefined ? fresh : (countsIn(file, before).done ?? 0) - done - started - failed;
  const waiting = Math.min(fresh, Math.max(0, arrived));
  const parts: StagePart[] = [
    { state: "success", n: done },
    { state: "running", n: started },
    { state: "failed", n: failed },
    { state: "waiting", n: waiting },
    { state: "skipped", n: fresh - waiting },
  ];
  return parts.filter(({ n }) => n > 0);
}
