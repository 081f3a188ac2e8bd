/**
 * Unsaved changes of a text. They are stored in the browser per tenant and definition, so a reload, an expired session or a
 * server outage loses nothing. A draft knows the version it is based on; if another version was saved in the meantime, the user
 * decides which one to keep.
 */
import { useRef, useState } from "react";
import { useSessionStatus } from "../../app/session.ts";

/** The text of the definition as the server has it. */
export interface Stored {
  text: string;
  version: number;
}

export interface Draft {
  text: string;
  change(text: string): void;
  isChanged: boolean;
  /** The version that the text is based on; it is sent with the save. */
  base: number;
  /** The server has a version other than `base`. */
  isStale: boolean;
  /** False if the browser could not keep it. */
  isKept: boolean;
  /** Whether leaving the page loses it, as of the last change: a save that has just ended is not drawn yet. */
  isAtRisk(): boolean;
  /** Back to the stored text. */
  discard(): void;
  /** Rebases the text onto the stored version: saving it overwrites that version. */
  rebase(): void;
  /** The text was saved, and this is what is stored now. */
  saved(stored: Stored): void;
}

interface Kept {
  text: string;
  base: number;
  at: number;
}

const PREFIX = "millrace.draft.";
const DRAFTS_MAX = 20;

/** `key` names the definition, such as `chain.ID`. A component that shows another one later needs another React key. */
export function useDraft(key: string, stored: Stored): Draft {
  const session = useSessionStatus();
  const tenant = "session" in session ? session.session.tenantId : null;
  const name = `${PREFIX}${tenant ?? "all"}.${key}`;
  const [own, setOwn] = useState(() => read(name));
  const [isKept, setKept] = useState(true);
  // What was saved is shown until the page has read it, too.
  const [last, setLast] = useState<{ now: Stored; replaces: number }>();
  const current = last && last.replaces === stored.version ? last.now : stored;
  const isChanged = own !== undefined && own.text !== current.text;
  const base = isChanged ? own.base : current.version;

  const newest = useRef({ own, isAtRisk: false });

  function keep(next: Kept | undefined): void {
    const kept = write(name, next);
    newest.current = { own: next, isAtRisk: !kept };
    setOwn(next);
    setKept(kept);
  }
  return {
    text: own?.text ?? current.text,
    isChanged,
    base,
    isStale: isChanged && base !== current.version,
    isKept,
    isAtRisk: () => newest.current.isAtRisk,
    change: (text) => keep(text === current.text ? undefined : { text, base, at: Date.now() }),
    discard: () => keep(undefined),
    rebase: () => own && keep({ ...own, base: current.version }),
    saved(now) {
      setLast({ now, replaces: stored.version });
      // What was typed while it was saved is a change of what was saved.
      const typed = newest.current.own;
      keep(typed && typed.text !== own?.text ? { ...typed, base: now.version } : undefined);
    },
  };
}

function read(name: string): Kept | undefined {
  const text = localStorage.getItem(name);
  if (text === null) return undefined;
  try {
    const kept = JSON.parse(text) as Partial<Kept> | null;
    if (typeof kept?.text === "string" && typeof kept.base === "number") return { at: 0, ...kept } as Kept;
  } catch {
    // Not written by this page.
  }
  return undefined;
}

/** Returns whether the browser could store it. */
function write(name: string, kept: Kept | undefined): boolean {
  if (!kept) {
    localStorage.removeItem(name);
    return true;
  }
  try {
    localStorage.setItem(name, JSON.stringify(kept));
    removeOldest();
    return true;
  } catch {
    // Storage is full. Remove the older draft, which would otherwise be restored as this one.
    localStorage.removeItem(name);
    return false;
  }
}

function removeOldest(): void {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
  if (names.length <= DRAFTS_MAX) return;
  const [oldest] = names.toSorted((one, other) => (read(one)?.at ?? 0) - (read(other)?.at ?? 0));
  if (oldest !== undefined) localStorage.removeItem(oldest);
}
