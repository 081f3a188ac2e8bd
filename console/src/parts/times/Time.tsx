/** A timestamp, absolute or relative; the tooltip has the other form. */
import { useSyncExternalStore } from "react";
import { createTicker, serverClock } from "../../api/clock.ts";
import { usePreference, zone, zoneName } from "../../app/preferences.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { relativeText } from "./format-duration.ts";
import { useFormats } from "./time.ts";

interface TimeProps {
  at: string | undefined | null;
  relative?: boolean;
  /**
   * Set for times that can be in the future, such as the next attempt. Any other time is treated as past, even if clocks differ.
   */
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
