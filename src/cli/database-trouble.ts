/** Sentences for a database that cannot be used, for the commands that open one. */

import { isUnavailable, sqlState } from "../kernel/data/db.ts";
import { OperatorError } from "../kernel/errors.ts";
import { messageOf } from "../kernel/text/message-of.ts";
import { withCauses } from "./common/causes.ts";

/** By SQLSTATE. */
const REFUSALS: Readonly<Record<string, string>> = {
  "28P01": "refuses the user or the password of DATABASE_URL.",
  "28000": "refuses the user of DATABASE_URL.",
  "3D000": "does not exist. Create it, or correct DATABASE_URL.",
  "25006": "is read-only, as a standby is. DATABASE_URL must name the primary server.",
  "53100": "has no space left on its disk.",
  "53200": "has no memory left.",
  "42501": "does not let this user do what Millrace needs. Make it the database's owner, or grant it CREATE on it.",
};

/** Says what is wrong with the database that DATABASE_URL names; any other error is returned as it is. */
export function explainDatabaseTrouble(error: unknown, databaseUrl: string | undefined): unknown {
  if (databaseUrl === undefined || error instanceof OperatorError) return error;
  for (const cause of withCauses(error)) {
    const trouble = troubleOf(cause);
    if (trouble !== undefined) return new OperatorError(`The database at ${placeOf(databaseUrl)} ${trouble}`);
  }
  return error;
}

function troubleOf(error: unknown): string | undefined {
  const code = sqlState(error);
  const refusal = code === undefined ? undefined : REFUSALS[code];
  if (refusal !== undefined) return refusal;
  if (!isUnavailable(error)) return undefined;
  const reason = code ?? messageOf(error);
  return `cannot be reached (${reason}). Is it running, and is DATABASE_URL right?`;
}

/** `host:5432/name`, without the user and the password. */
function placeOf(databaseUrl: string): string {
  const { host, pathname, searchParams } = new URL(databaseUrl);
  return `${searchParams.get("host") ?? host}${pathname}`;
}
