/** A window of a source. Whole days of UTC are dates, which no time zone of the reader may move; the end is exclusive. */
import { useFormats } from "../parts/times/time.ts";
import { useWords } from "../words/words.ts";
import type { TimeWindow } from "./api.ts";
import { planWords } from "./plan-words.ts";

const MIDNIGHT = "T00:00:00.000Z";

export function WindowText({ window }: { window: TimeWindow | null }) {
  const text = useWindowText();
  return <span className="tabular">{text(window)}</span>;
}

export function useWindowText(): (window: TimeWindow | null) => string {
  const words = useWords(planWords);
  const { time } = useFormats();
  return (window) => {
    if (window === null) return words.noWindow;
    const isDays = window.from.endsWith(MIDNIGHT) && window.to.endsWith(MIDNIGHT);
    const [from, to] = [window.from, window.to].map((at) => (isDays ? at.slice(0, 10) : time(at)));
    return `${from} – ${to}`;
  };
}

/** One edge of a window. */
export function useEdgeText(): (at: string) => string {
  const { time } = useFormats();
  return (at) => (at.endsWith(MIDNIGHT) ? at.slice(0, 10) : time(at));
}
