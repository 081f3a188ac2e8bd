/** The structured log: one JSON object a line on standard error, so that standard output stays free for results. */
import { type Logger, pino } from "pino";

export type Log = Logger;

/** Fields that may contain secrets. They are redacted here too, in case a whole request or row is logged. */
const SECRET = [
  "accessToken",
  "adminKey",
  "apiKey",
  "authorization",
  "connectionString",
  "cookie",
  "DATABASE_URL",
  "databaseUrl",
  "key",
  "MILLRACE_ADMIN_KEY",
  "MILLRACE_API_KEY",
  "MILLRACE_SECRET_KEY",
  "password",
  "PGPASSWORD",
  "secret",
  "secretKey",
  "token",
];
const REDACTED = ["", "*.", "*.*."].flatMap((place) => SECRET.map((name) => place + name));

export function createLog(options: { level: string }): Log {
  return pino(
    {
      level: options.level,
      redact: { paths: REDACTED, censor: "[redacted]" },
      base: { pid: process.pid },
      serializers: { err: describeError },
    },
    pino.destination({ dest: 2, sync: false }),
  );
}

/** Only the useful fields: node-postgres attaches its whole client to an error. */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { name, message, stack, cause } = error;
  const code = (error as { code?: unknown }).code;
  return { type: name, message, code, stack, ...(cause === undefined ? {} : { cause: describeError(cause) }) };
}
