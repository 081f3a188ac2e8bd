/** What works, but less well than its author may think. Warnings are recorded with the plan. */
import type { Origins } from "../layers.ts";
import type { CheckInput, Finding } from "./check.ts";

export function* countsCannotBeReconciled({ policy, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail || policy.response.totalPath !== undefined || policy.window?.probe !== undefined) return;
  yield {
    field: "response.totalPath",
    reason: "The source announces no total, so the number of records cannot be reconciled.",
  };
}

export function* lostPagesRestart({ policy: { pagination } }: CheckInput): Iterable<Finding> {
  if (pagination.tokenClass !== "SINGLE_USE") return;
  yield {
    field: "pagination.tokenClass",
    reason: "A page can be asked for only once: after a lost answer, the slice starts again from its first page.",
  };
}

export function* versionsGoByContent({ policy }: CheckInput): Iterable<Finding> {
  if (policy.enumerator === "TwoPhase" || policy.response.updatedAtPath !== undefined) return;
  yield {
    field: "response.updatedAtPath",
    reason: "The records have no time of change, so whatever comes last is the newest version.",
  };
}

export function* capsAreSeenLate({ policy: { window, response } }: CheckInput): Iterable<Finding> {
  if (window?.recordsMax === undefined || window.probe || response.totalPath !== undefined) return;
  yield {
    field: "window.recordsMax",
    reason: "The source announces no total, so a slice beyond this number is seen only when its records end there.",
  };
}

export const isPlatformRate = (origins: Origins) => origins["rateLimit.refillRatePerSec"] === "platform";

export function* rateIsUndeclared({ origins, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail || !isPlatformRate(origins)) return;
  yield { field: "rateLimit.refillRatePerSec", reason: "No rate is declared, so there is 1 request a second." };
}

/**
 * The gate counts a burst towards the rate, so no second has more requests than it: what goes at once is taken from what follows.
 * A source that is slower by less than this share does not notice.
 */
const SLOWER_MIN = 0.1;
export function* burstCostsRate({ policy: { rateLimit } }: CheckInput): Iterable<Finding> {
  const { refillRatePerSec = 1, burstCapacity = 1 } = rateLimit;
  const permits = Math.floor(refillRatePerSec);
  const left = permits - burstCapacity + 1;
  if (burstCapacity === 1 || left < 1 || left >= permits * (1 - SLOWER_MIN)) return;
  yield {
    field: "rateLimit.burstCapacity",
    reason: `Requests that go at once count towards the rate: beside bursts of ${burstCapacity} there are ${left} a second instead of ${permits}.`,
  };
}

export function* connectionIsOpenToRead({ definition, isDetail }: CheckInput): Iterable<Finding> {
  if (isDetail || !definition.baseUrl.toLowerCase().startsWith("http:")) return;
  yield {
    field: "baseUrl",
    reason: "Requests and credentials go over http, which everyone on the way can read.",
    table: "reg_provenance",
  };
}

export function* orderIsDescending({ policy: { pagination } }: CheckInput): Iterable<Finding> {
  if (!/\bdesc\b/i.test(pagination.orderBy ?? "")) return;
  yield {
    field: "pagination.orderBy",
    reason: "In descending order, records that change while pages are read move to pages that were read already.",
  };
}
