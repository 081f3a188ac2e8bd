/** How long something took; it counts on while it goes on. */

import { durationText } from "../parts/durations.ts";
import { useNow } from "../parts/Time.tsx";

export function Took({ from, to }: { from: string; to: string | null }) {
  return to === null ? <SoFar from={from} /> : durationText(Date.parse(to) - Date.parse(from));
}

function SoFar({ from }: { from: string }) {
  return durationText(useNow() - Date.parse(from));
}
