/** What a text says, while it is typed. A large one is read in a worker when the person pauses: 10,000 nodes take half a second. */
import { useEffect, useState } from "react";
import { readApart } from "./apart.ts";
import { type ReadText, readText, withPlaces } from "./text.ts";

const AT_ONCE_CHARS_MAX = 40_000;
const PAUSE_MS = 400;

interface Reading {
  /** Of the text as it was last read. */
  read: ReadText;
  /** It is the text as it is. */
  isCurrent: boolean;
  /** Nothing has been read yet. */
  isFirst: boolean;
}

/** Of a text that nobody has read yet. */
const UNREAD = withPlaces("", {
  value: undefined,
  problems: [],
  hasComments: false,
  lineStarts: [],
  ranges: new Map(),
  aliases: new Map(),
});

export function useReadText(text: string): Reading {
  const [last, setLast] = useState<{ text: string; read: ReadText }>();
  const isLarge = text.length > AT_ONCE_CHARS_MAX;
  const isRead = last?.text === text;
  const isFirst = last === undefined;
  useEffect(() => {
    if (!isLarge || isRead) return undefined;
    let isGone = false;
    const timer = setTimeout(
      async () => {
        const read = await readApart(text).catch(() => readText(text));
        if (!isGone) setLast({ text, read });
      },
      isFirst ? 0 : PAUSE_MS,
    );
    return () => {
      isGone = true;
      clearTimeout(timer);
    };
  }, [text, isLarge, isRead, isFirst]);
  if (!isLarge) return { read: readText(text), isCurrent: true, isFirst: false };
  return { read: last?.read ?? UNREAD, isCurrent: isRead, isFirst };
}
