/** The keys of a log: up and down lead from line number to line number, and with Shift they mark the lines between. */
import type { Virtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type RefObject, useLayoutEffect, useRef, useState } from "react";
import type { Line } from "./lines.ts";

/** The line whose number is this element. */
export function lineNoOf(element: EventTarget): number | undefined {
  const no = element instanceof HTMLElement ? element.dataset["no"] : undefined;
  return no === undefined ? undefined : Number(no);
}

/** `onRange` gets the line that was left and the one that was reached. */
export function useLineKeys(
  scroller: RefObject<HTMLElement | null>,
  lines: readonly Line[],
  virtual: Virtualizer<HTMLDivElement, Element>,
  onRange: (from: number, to: number) => void,
) {
  const [active, setActive] = useState<number>();
  const wanted = useRef<number>(undefined);
  // A line far away exists only after the log has scrolled to it.
  useLayoutEffect(() => {
    const found = scroller.current?.querySelector<HTMLElement>(`[data-no="${wanted.current}"]`);
    if (!found) return;
    wanted.current = undefined;
    found.focus({ preventScroll: true });
  });

  function onKey(event: KeyboardEvent): void {
    const no = lineNoOf(event.target);
    if (no === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = placeBy(
      event.key,
      lines.findIndex((line) => line.no === no),
      lines.length,
    );
    const next = place === undefined ? undefined : lines[place];
    if (place === undefined || !next) return;
    event.preventDefault();
    if (next.no === no) return; // Nothing is drawn anew, so a wanted line would take the focus much later.
    wanted.current = next.no;
    setActive(next.no);
    virtual.scrollToIndex(place, { align: "auto" });
    if (event.shiftKey) onRange(no, next.no);
  }
  return { active, setActive, onKey };
}

function placeBy(key: string, place: number, count: number): number | undefined {
  switch (key) {
    case "ArrowDown":
      return Math.min(place + 1, count - 1);
    case "ArrowUp":
      return Math.max(place - 1, 0);
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return undefined;
  }
}
