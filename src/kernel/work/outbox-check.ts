/** The doctor's check of the outbox: events that are dead, overdue, or held for too long. */
import { statement } from "../data/statement.ts";
import type { DoctorCheck } from "../doctor.ts";

interface OutboxHealth {
  waiting: number;
  /** How long the oldest due event has waited. */
  overdue_seconds: number;
  overdue_consumer: string | null;
  held_seconds: number;
  held_consumer: string | null;
  dead: number;
  dead_consumer: string | null;
  dead_error: string | null;
}

const OVERDUE_SECONDS_WARN = 120;
/** Longer than a delivery may take, whatever its consumer. */
const HELD_SECONDS_WARN = 300;

const HEALTH = statement<OutboxHealth>(
  "kernel.outbox.health",
  `with oldest_ready as (
     select consumer, due_at from kernel.outbox where state = 'ready' and due_at <= now() order by due_at limit 1
   ), oldest_leased as (
     select consumer, due_at from kernel.outbox where state = 'leased' order by due_at limit 1
   ), dead as (
     select consumer, last_error from kernel.outbox where state = 'dead' order by id desc limit 1
   )
   select (select count(*)::int from kernel.outbox where state <> 'dead') as waiting,
          coalesce((select extract(epoch from now() - due_at) from oldest_ready), 0)::float8 as overdue_seconds,
          (select consumer from oldest_ready) as overdue_consumer,
          coalesce((select extract(epoch from now() - due_at) from oldest_leased), 0)::float8 as held_seconds,
          (select consumer from oldest_leased) as held_consumer,
          (select count(*)::int from kernel.outbox where state = 'dead') as dead,
          (select consumer from dead) as dead_consumer, (select last_error from dead) as dead_error`,
);

export const outboxCheck: DoctorCheck = {
  name: "outbox",
  async look(db) {
    const [health] = await db.read(HEALTH);
    if (!health) throw new Error("the query of the outbox returned no row");
    const found = `Events to deliver: ${health.waiting}.`;
    // The oldest is claimed first: with a backlog, what is held was due for about as long as what waits.
    if (health.held_seconds - health.overdue_seconds >= HELD_SECONDS_WARN) {
      return {
        verdict: "warning",
        found: `${found} One for \`${health.held_consumer}\` is held by a process and was due ${seconds(health.held_seconds)} ago.`,
        advice:
          "Run the doctor again in a minute. If it is still held, its delivery hangs: the log of the process that holds it says more.",
      };
    }
    if (health.overdue_seconds >= OVERDUE_SECONDS_WARN) {
      return {
        verdict: "warning",
        found: `${found} One for \`${health.overdue_consumer}\` has been due for ${seconds(health.overdue_seconds)}.`,
        advice:
          "Check that a process runs with the role `worker`, that it has this consumer configured, and that what it delivers to answers.",
      };
    }
    if (health.dead === 0) return { verdict: "ok", found };
    return {
      verdict: "warning",
      found: `${found} Dead after the last attempt: ${health.dead}, the latest for \`${health.dead_consumer}\`: ${health.dead_error}`,
      advice:
        "Fix the cause, then retry them: update kernel.outbox set state = 'ready', attempt = 0, lost_count = 0, due_at = now() where state = 'dead'.",
    };
  },
};

function seconds(value: number): string {
  return `${Math.round(value)} s`;
}
