/** The state of a receiver in a few words, and what a delivery waits for. */
import { Time, useNow } from "../parts/times/Time.tsx";
import { useWords } from "../words/words.ts";
import type { Delivery, Endpoint } from "./api.ts";
import styles from "./arrivals.module.css";
import { arrivals } from "./words.ts";

/** Whether `EndpointState` shows anything: not of a receiver that works. */
export function hasState({ heldUntil, failingSince, disabledReason }: Endpoint, nowMs: number): boolean {
  return disabledReason !== null || failingSince !== null || isAhead(heldUntil, nowMs);
}

export function EndpointState({ heldUntil, failingSince, disabledReason }: Endpoint) {
  const text = useWords(arrivals);
  const isHeld = useIsAhead(heldUntil);
  if (disabledReason !== null) return <span className={styles.reason}>{disabledReason}</span>;
  return (
    <>
      {isHeld && (
        <>
          {text.askedToWait} <Time at={heldUntil} relative due />{" "}
        </>
      )}
      {failingSince !== null && (
        <span className={styles.soft}>
          {text.failingSince} <Time at={failingSince} />
        </span>
      )}
    </>
  );
}

/** Why a delivery is not delivered: what it waits for, or else why it has failed. */
export function DeliveryReason({ one: { status, nextAttemptAt, error, endpoint } }: { one: Delivery }) {
  const text = useWords(arrivals);
  const isHeld = useIsAhead(endpoint.heldUntil);
  const isLater = useIsAhead(nextAttemptAt);
  return (
    <>
      {status === "PENDING" &&
        (isHeld ? (
          <>
            {text.askedToWait} <Time at={endpoint.heldUntil} relative due />{" "}
          </>
        ) : isLater ? (
          <>
            {text.next} <Time at={nextAttemptAt} relative due />{" "}
          </>
        ) : endpoint.failingSince === null ? (
          `${text.waitsItsTurn} `
        ) : (
          `${text.waitsForFailing} `
        ))}
      {status !== "DELIVERED" && <span className={styles.reason}>{error}</span>}
    </>
  );
}

function useIsAhead(at: string | null): boolean {
  return isAhead(at, useNow());
}

function isAhead(at: string | null, nowMs: number): at is string {
  return at !== null && Date.parse(at) > nowMs;
}
