/** The history server of the E-utilities: lists of ids under a WebEnv and a query key, forgotten when they are idle. */
import type { Clock } from "../../kernel/time/clock.ts";
import type { Random } from "../common/random.ts";

export interface Sessions {
  /** Into the session of that name, or a new one. */
  keep(ids: readonly string[], webEnv: string | null): { webEnv: string; queryKey: string };
  find(webEnv: string, queryKey: string): readonly string[] | undefined;
  forget(webEnv: string): void;
}

const SESSIONS_MAX = 1000;
const QUERIES_MAX = 1000;
const NAME_DIGITS = 24;

export function createSessions({ clock, random, idleMs }: { clock: Clock; random: Random; idleMs: number }): Sessions {
  /** In the order of their last use. */
  const sessions = new Map<string, { queries: (readonly string[])[]; usedAt: number }>();

  function use(webEnv: string) {
    const session = sessions.get(webEnv);
    sessions.delete(webEnv);
    if (!session || clock.now() - session.usedAt >= idleMs) return undefined;
    session.usedAt = clock.now();
    sessions.set(webEnv, session);
    return session;
  }

  return {
    keep(ids, given) {
      const old = given === null ? undefined : use(given);
      if (given !== null && old && old.queries.length < QUERIES_MAX) {
        old.queries.push(ids);
        return { webEnv: given, queryKey: String(old.queries.length) };
      }
      for (const [oldest] of sessions) if (sessions.size >= SESSIONS_MAX) sessions.delete(oldest);
      const digits = Array.from({ length: NAME_DIGITS }, () => random.below(16).toString(16)).join("");
      const webEnv = `MCID_${digits}`;
      sessions.set(webEnv, { queries: [ids], usedAt: clock.now() });
      return { webEnv, queryKey: "1" };
    },
    find: (webEnv, queryKey) => use(webEnv)?.queries[Number(queryKey) - 1],
    forget: (webEnv) => void sessions.delete(webEnv),
  };
}
