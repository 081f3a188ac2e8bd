/** How long something took; it counts on while it goes on. */

import { durationText } from "../parts/times/durations.ts";
import { useNow } from "../parts/times/Time.tsx";

export function Elapsed({ from, to }: { from: string; to: string | null }) {
  return to === null ? <SoFar from={from} /> : durationText(Date.parse(to) - Date.parse(from));
}

function SoFar({ from }: { from: string }) {
  return durationText(useNow() - Date.parse(from));
}
