/** When a table is expected: its usual time, and the deadline of a model. Either can be over. */
import { Time, useNow } from "../parts/times/Time.tsx";
import { useWords } from "../words/words.ts";
import { arrivals } from "./words.ts";

/** Of a table that is missing. */
export function Expected({ at }: { at: string }) {
  const text = useWords(arrivals);
  const isOver = Date.parse(at) < useNow();
  return (
    <span>
      {isOver ? text.usuallyBefore : text.usually} <Time at={at} due />
    </span>
  );
}

export function Deadline({ at, isMissing }: { at: string; isMissing: boolean }) {
  const text = useWords(arrivals);
  const now = useNow();
  const isLate = isMissing && Date.parse(at) < now;
  return (
    <span>
      {isLate ? text.lateSince : text.deadline} <Time at={at} due />
    </span>
  );
}
