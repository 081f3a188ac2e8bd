/** Keys that work on every page, unless a text is being typed. */
import { useEffect, useEffectEvent } from "react";

interface Shortcuts {
  onSearch(): void;
  onHelp(): void;
  onCopyLink(): void;
  /** A letter after `g`. */
  onGo(letter: string): void;
}

const SEQUENCE_MS = 1_200;
let goUntil = 0;

export function useShortcuts({ onSearch, onHelp, onCopyLink, onGo }: Shortcuts): void {
  const onKey = useEffectEvent((event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      onSearch();
      return;
    }
    // A list that has the focus has moved in itself.
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    if (event.timeStamp < goUntil) {
      goUntil = 0;
      onGo(event.key);
    } else if (event.key === "g") goUntil = event.timeStamp + SEQUENCE_MS;
    else if (event.key === "?") onHelp();
    else if (event.key === "y") onCopyLink();
    else if (event.key === "/") focusFilter(event);
    else if (event.key === "j" || event.key === "k") enterList();
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => onKey(event);
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** The filter of a list is its input of type search. */
function focusFilter(event: KeyboardEvent): void {
  const filter = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (!filter) return;
  event.preventDefault();
  filter.focus();
}

/** To the row of the first list that the keyboard was on last, or to the first row that is drawn. */
function enterList(): void {
  const row = (chosen: string) => document.querySelector<HTMLElement>(`main [role=row][data-index]${chosen}`);
  (row("[tabindex='0']") ?? row(""))?.focus();
}
