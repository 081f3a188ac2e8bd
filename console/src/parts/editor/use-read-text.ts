/** What a text says, while it is typed. A large one is read when the person pauses: 10,000 nodes take about a second. */
import { useEffect, useState } from "react";
import { type ReadText, readText } from "./text.ts";

const AT_ONCE_CHARS_MAX = 40_000;
const PAUSE_MS = 400;

export function useReadText(text: string): { read: ReadText; isCurrent: boolean } {
  const [paused, setPaused] = useState(text);
  const isLarge = text.length > AT_ONCE_CHARS_MAX;
  useEffect(() => {
    if (!isLarge) return;
    const timer = setTimeout(() => setPaused(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text, isLarge]);
  const shown = isLarge ? paused : text;
  return { read: readText(shown), isCurrent: shown === text };
}
