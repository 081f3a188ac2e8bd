/** The doctor's checks and the gauges of the Neo4j projection: how far it is behind, and whether it needs a rebuild. */
import type { Db } from "../../kernel/data/db.ts";
import type { DoctorCheck } from "../../kernel/doctor.ts";
import { counted } from "../../kernel/text/sentences.ts";
import type { Clock } from "../../kernel/time/clock.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { LineageMetrics } from "../catalogue.ts";
import { type MirrorState, mirrorState, type Projection } from "./index.ts";

const BEHIND_SECONDS_WARN = 120;
const COUNT_EVERY_MS = 15_000;

export const needsRebuild = ({ gaps, backlog }: MirrorState): boolean => gaps.length > 0 || backlog.dead > 0;

/** `health` asks the server itself: with no change to write, nobody else would notice that it is away. */
export const mirrorCheck = (health: Projection["health"]): DoctorCheck => ({
  name: "lineage neo4j",
  async look(db) {
    const [state, server] = await Promise.all([mirrorState(db), health()]);
    const { backlog, gaps } = state;
    if (needsRebuild(state)) {
      const [first] = gaps;
      const why = first
        ? `Neo4j has refused changes of ${gaps.length === 1 ? `tenant ${first.tenant_id}` : `${gaps.length} tenants, of tenant ${first.tenant_id} for instance`}: ${first.error}`
        : `${counted(backlog.dead, "change")} of the graph were given up, because processes were lost with them.`;
      return {
        verdict: "warning",
        found: `The graph in Neo4j is incomplete. ${why}`,
        advice: `Fix the cause, then \`millrace lineage rebuild-neo4j${gaps.length === 1 ? ` --tenant ${first?.tenant_id}` : ""}\`.`,
      };
    }
    const waiting =
      backlog.waiting === 0 ? "Neo4j has every change." : `Changes that wait for Neo4j: ${backlog.waiting}.`;
    const isBehind = backlog.oldest_seconds >= BEHIND_SECONDS_WARN;
    if (!isBehind && "server" in server) return { verdict: "ok", found: waiting };
    const behind = isBehind ? ` The oldest for ${Math.round(backlog.oldest_seconds)} s.` : "";
    const error = "error" in server ? `It does not answer: ${server.error}` : (backlog.last_error ?? "");
    return {
      verdict: "warning",
      found: `${waiting}${behind} ${error}`.trim(),
      advice:
        "Bring the Neo4j server back, or correct `lineage.neo4j`. Changes wait as long as it takes, and nothing is lost.",
    };
  },
});

/** Counted when they are read, but not at every reading, and never while nobody reads. */
export function measureMirror(deps: { db: Db; clock: Clock; metrics: LineageMetrics; log: ServiceLog }): void {
  const { db, clock, metrics, log } = deps;
  let state: MirrorState | undefined;
  let countedAtMs = Number.NEGATIVE_INFINITY;
  const value = (read: (known: MirrorState) => number) => () => {
    if (clock.now() - countedAtMs >= COUNT_EVERY_MS) {
      countedAtMs = clock.now();
      // The reading does not wait: it shows what was counted before.
      mirrorState(db).then(
        (found) => void (state = found),
        (err: unknown) => log.warn({ err }, "the backlog of the graph in Neo4j could not be counted"),
      );
    }
    return state ? [{ labels: {}, value: read(state) }] : [];
  };
  metrics.gauge(
    "millrace_lineage_neo4j_waiting",
    value(({ backlog }) => backlog.waiting),
  );
  metrics.gauge(
    "millrace_lineage_neo4j_oldest_seconds",
    value(({ backlog }) => backlog.oldest_seconds),
  );
  metrics.gauge(
    "millrace_lineage_neo4j_needs_rebuild",
    value((known) => (needsRebuild(known) ? 1 : 0)),
  );
}
