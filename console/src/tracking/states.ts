/** The statuses of shards as the six states of the console, in one place. */
import { useMemo } from "react";
import type { Look } from "../parts/charts/heat-map.ts";
import { GLYPHS, type State } from "../parts/states/state.ts";
import { useWords } from "../words/words.ts";
import { type Shard, STAGES, type Stage, type Status, statusIn } from "./api.ts";
import { tracking } from "./words.ts";

const STATUS_STATES = {
  done: "success",
  started: "running",
  new: "waiting",
  failed: "failed",
} as const satisfies Record<Status, State>;

/** A stage that has not been reached waits for nothing of its own. */
export function stateIn(shard: Shard, stage: Stage): State {
  const status = statusIn(shard, stage);
  const before = STAGES[STAGES.indexOf(stage) - 1];
  if (status === "new" && before !== undefined && statusIn(shard, before) !== "done") return "skipped";
  return STATUS_STATES[status];
}

/** The looks of the grid's characters, the most urgent first: what failed, what runs, what waits, by stage. */
export function useLooks(): readonly Look[] {
  const text = useWords(tracking);
  return useMemo<readonly Look[]>(() => {
    const of = (state: State, codes: string, word: (stage: string) => string) =>
      STAGES.map((stage, at) => ({
        code: codes[at] ?? "",
        state,
        word: word(stage),
        glyph: `${at + 1}${GLYPHS[state]}`,
      }));
    return [
      ...of("failed", "ABCD", text.failedIn),
      ...of("running", "1234", text.startedIn),
      ...of("waiting", "abcd", text.waitsFor),
      { code: "*", state: "success", word: text.done },
      { code: ".", state: "none", word: text.noShard },
    ];
  }, [text]);
}
