/** Logs for tests: one that drops all lines, and one that records them. */
import type { ServiceLog } from "../src/kernel/work/service.ts";

export const silentLog: ServiceLog = { info: () => {}, warn: () => {}, error: () => {} };

export interface LogLine {
  level: keyof ServiceLog;
  fields: Record<string, unknown>;
  message: string;
}

export function recordingLog(): ServiceLog & { lines: LogLine[] } {
  const lines: LogLine[] = [];
  const record = (level: keyof ServiceLog) => (fields: object, message: string) =>
    void lines.push({ level, fields: fields as Record<string, unknown>, message });
  return { lines, info: record("info"), warn: record("warn"), error: record("error") };
}
