/**
 * The scrolls behind Crossref's `cursor`: one token for all pages of a list, and every request with it moves on, whether its
 * answer arrives or not. A scroll holds the works as they were when it began, and is forgotten when it is idle.
 */
import type { Clock } from "../../kernel/time/clock.ts";
import type { Random } from "../common/random.ts";
import type { SimulatedRecord } from "../common/records.ts";

export interface Scroll {
  token: string;
  works: readonly SimulatedRecord[];
  /** How many were handed out. */
  position: number;
}

export interface Scrolls {
  begin(works: readonly SimulatedRecord[]): Scroll;
  /** Undefined for a token that is unknown or has expired. */
  find(token: string): Scroll | undefined;
  forget(token: string): void;
}

/** As of Elasticsearch, which has a limit too; the oldest goes. */
const SCROLLS_MAX = 500;
/** `\x0equeryThenFetch`, as the real tokens begin. */
const TOKEN_START = Buffer.from("\u000equeryThenFetch");
const TOKEN_BYTES = 96;

export function createScrolls({ clock, random, idleMs }: { clock: Clock; random: Random; idleMs: number }): Scrolls {
  /** In the order of their last use. */
  const scrolls = new Map<string, Scroll & { usedAt: number }>();

  function use(scroll: Scroll): Scroll {
    scrolls.delete(scroll.token);
    const used = Object.assign(scroll, { usedAt: clock.now() });
    scrolls.set(scroll.token, used);
    return used;
  }

  return {
    begin(works) {
      for (const [oldest] of scrolls) if (scrolls.size >= SCROLLS_MAX) scrolls.delete(oldest);
      const noise = Buffer.from(Array.from({ length: TOKEN_BYTES }, () => random.below(256)));
      return use({ token: Buffer.concat([TOKEN_START, noise]).toString("base64"), works, position: 0 });
    },
    find(token) {
      const scroll = scrolls.get(token);
      if (scroll && clock.now() - scroll.usedAt < idleMs) return use(scroll);
      scrolls.delete(token);
      return undefined;
    },
    forget: (token) => void scrolls.delete(token),
  };
}
