/** A moment, as a time or as its age; the other one is in the tooltip. */
import { useSyncExternalStore } from "react";
import { createTicker, serverClock } from "../../api/clock.ts";
import { usePreference, zone, zoneName } from "../../app/preferences.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { relativeText } from "./spell.ts";
import { useFormats } from "./time.ts";

interface TimeProps {
  at: string | undefined | null;
  relative?: boolean;
  /** For what is to come, such as the next try. Anything else has happened, whatever the clocks say. */
  due?: boolean;
}

export function Time({ at, relative, due }: TimeProps) {
  const { time } = useFormats();
  const text = useWords(common);
  const now = useNow();
  const zoneText = zoneName(usePreference(zone));
  if (!at) return <span>{text.never}</span>;
  const whole = `${time(at)} ${zoneText}`;
  const age = relativeText(Date.parse(at) - now, due ?? false, text);
  return (
    <time dateTime={at} title={relative ? whole : age}>
      {relative ? age : time(at)}
    </time>
  );
}

const TICK_MS = 1_000;
const ticker = createTicker(serverClock.now, TICK_MS);

/** The present, once a second. */
export function useNow(): number {
  return useSyncExternalStore(ticker.subscribe, ticker.get);
}
