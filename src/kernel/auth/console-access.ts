/** The two ways into the web console that a process opens together: sessions, and the links that start them. */
import type { Db } from "../data/db.ts";
import type { Clock } from "../time/clock.ts";
import type { Wake } from "../work/wake.ts";
import { type ConsoleLinks, createConsoleLinks } from "./console-links.ts";
import { createConsoleSecrets } from "./console-secrets.ts";
import { type ConsoleSessions, createConsoleSessions } from "./console-sessions.ts";

export interface ConsoleAccess {
  sessions: ConsoleSessions;
  links: ConsoleLinks;
}

export interface ConsoleAccessDeps {
  db: Db;
  wake: Wake;
  clock: Clock;
  adminKey: string | undefined;
}

export function createConsoleAccess({ db, wake, clock, adminKey }: ConsoleAccessDeps): ConsoleAccess {
  const secrets = createConsoleSecrets({ adminKey });
  return {
    sessions: createConsoleSessions({ db, wake, clock, secrets }),
    links: createConsoleLinks({ db, clock, secrets, hasEnvironmentAdmin: adminKey !== undefined }),
  };
}
