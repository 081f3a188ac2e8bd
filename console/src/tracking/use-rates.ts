/** The rates of the stages while the page is open. */
import { useEffect, useState } from "react";
import { serverClock } from "../api/clock.ts";
import { useNow } from "../parts/times/Time.tsx";
import type { Queues, Stage } from "./api.ts";
import { ratePerMinute, type Sample, withSample } from "./rates.ts";

export function useRates(queues: Queues): (stage: Stage) => number | undefined {
  const now = useNow();
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  useEffect(() => {
    const done = Object.fromEntries(queues.stages.map((one) => [one.stage, one.done]));
    setSamples((before) => withSample(before, { atMs: serverClock.now(), done }));
  }, [queues]);
  return (stage) => ratePerMinute(samples, stage, now);
}
