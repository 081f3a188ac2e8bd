/** The failed requests of a run: what was asked and answered, and what was done about it. */
import type { Tx } from "../../kernel/data/db.ts";
import type { Bodies, PreparedBody } from "../bodies/bodies.ts";
import { recordFailures } from "../store/records/batches.ts";
import type { Exchange } from "./fetch.ts";

export interface Failure {
  /** What was done: RETRY, or how the run went on or ended. */
  action: string;
  reason: string;
  /** Unset if there was no answer. */
  exchange: Exchange | undefined;
}

export interface Failures {
  add(failure: Failure): void;
  /** Call it before the transaction that ends the run, and `commitIn` inside it. */
  prepare(
    bodies: Pick<Bodies, "prepare">,
    keepsBodies: boolean,
  ): Promise<{ commitIn(tx: Tx, runId: string): Promise<void> }>;
}

/** Of a run: the first ones, and the last. */
export const FAILURES_MAX = 20;
/** Kept in memory until the run ends. A failure beyond it is recorded without its body. */
const BODY_BYTES_MAX = 33_554_432;

export function createFailures(): Failures {
  const failures: Failure[] = [];
  return {
    add(failure) {
      failures[Math.min(failures.length, FAILURES_MAX - 1)] = failure;
      const bytes = failures.reduce((sum, { exchange }) => sum + (exchange?.body.length ?? 0), 0);
      if (bytes > BODY_BYTES_MAX && failure.exchange) {
        failures[failures.length - 1] = { ...failure, exchange: { ...failure.exchange, body: Buffer.alloc(0) } };
      }
    },

    async prepare(bodies, keepsBodies) {
      const prepared: (PreparedBody | undefined)[] = [];
      for (const { exchange } of failures) {
        prepared.push(keepsBodies && exchange?.body.length ? await bodies.prepare(exchange.body) : undefined);
      }
      return {
        async commitIn(tx, runId) {
          for (const body of prepared) await body?.commitIn(tx);
          await recordFailures(
            tx,
            runId,
            failures.map(({ action, reason, exchange }, index) => ({
              failure_no: index + 1,
              request: exchange?.request ?? {},
              status: exchange?.status ?? null,
              action_code: action,
              reason,
              body_hash: prepared[index]?.hash ?? null,
            })),
          );
        },
      };
    },
  };
}
