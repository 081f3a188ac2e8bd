/** Explains errors of the database that DATABASE_URL names, for the commands that open it. */

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
  "53100": "has no disk space left.",
  "53200": "has no memory left.",
  "42501": "does not let this user do what Millrace needs. Make it the database's owner, or grant it CREATE on it.",
};

/** An OperatorError for an error of that database; any other error is returned unchanged. */
export function explainDatabaseError(error: unknown, databaseUrl: string | undefined): unknown {
  if (databaseUrl === undefined || error instanceof OperatorError) return error;
  for (const cause of withCauses(error)) {
    const reason = reasonOf(cause);
    if (reason !== undefined) return new OperatorError(`The database at ${placeOf(databaseUrl)} ${reason}`);
  }
  return error;
}

function reasonOf(error: unknown): string | undefined {
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
