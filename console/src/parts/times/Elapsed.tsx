/** How long something took; it counts on while it runs. Nothing where it has not begun. */
import { durationText } from "./durations.ts";
import { useNow } from "./Time.tsx";

export function Elapsed({ from, to }: { from: string | null; to: string | null }) {
  if (from === null) return null;
  return to === null ? <SoFar from={from} /> : durationText(Date.parse(to) - Date.parse(from));
}

function SoFar({ from }: { from: string }) {
  return durationText(useNow() - Date.parse(from));
}
