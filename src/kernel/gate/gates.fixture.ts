/** Gates on a test database, with a session row that a test can end. */

import { noHints } from "../../../test/no-hints.ts";
import type { Db } from "../data/db.ts";
import { statement } from "../data/statement.ts";
import { KERNEL_METRICS } from "../telemetry/metric-table.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { ServiceLog } from "../work/service.ts";
import type { Session } from "../work/session.ts";
import { createWake, type Wake } from "../work/wake.ts";
import { createGates, type Gates } from "./gates.ts";

const OPEN = statement<{ id: string }>(
  "test.gate.session",
  `insert into kernel.session (process, roles, version, expires_at)
   values ('test', '{}', '0', now() + interval '1 hour') returning id`,
);

export interface TestGates extends Gates {
  sessionId: string;
  metrics(): Promise<string>;
}

export const silent: ServiceLog = { info: () => {}, warn: () => {}, error: () => {} };

interface Given {
  random?: () => number;
  wake?: Wake;
  log?: ServiceLog;
  session?: Pick<Session, "id">;
}

export async function openGates(db: Db, given: Given = {}): Promise<TestGates> {
  const { random = () => 0, wake = createWake(), log = silent, session = await sessionRow(db) } = given;
  const registry = createMetrics();
  const metrics = registry.define(KERNEL_METRICS);
  const gates = createGates({ db, session, wake, hints: noHints, log, metrics, random });
  return { ...gates, sessionId: session.id(), metrics: () => registry.render() };
}

async function sessionRow(db: Db): Promise<Pick<Session, "id">> {
  const [row] = await db.rows(OPEN);
  if (!row) throw new Error("no session");
  return { id: () => row.id };
}
