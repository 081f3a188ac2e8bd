/** What the headers of an answer say of the clock of its source and of its limits, for the connection check. */
import { counted } from "../../kernel/text/sentences.ts";
import { SECOND_MS } from "../../kernel/time/units.ts";
import type { Exchange } from "../run/fetch.ts";
import { providerSignal } from "../run/provider-headers.ts";
import type { Snapshot } from "../spec/snapshot.ts";
import { type CheckLine, line } from "./check-line.ts";

/** The header has whole seconds, and the answer takes a while. */
const CLOCK_OFF_MS = 5_000;

export function answerLines(
  { spec }: Snapshot,
  exchange: Exchange | undefined,
  nowMs: number,
  isUndeclared: boolean,
): CheckLine[] {
  return exchange
    ? [clockLine(exchange, spec.window?.safetyLagMs, nowMs), rateLine(exchange, spec.rateLimit, nowMs, isUndeclared)]
    : [];
}

function clockLine({ headers, latencyMs }: Exchange, safetyLagMs: number | undefined, nowMs: number): CheckLine {
  const saidMs = Date.parse(headers["date"] ?? "");
  if (Number.isNaN(saidMs)) return line("clock", "ok", "The source sends no `Date`, so its clock is not known.");
  const offMs = nowMs - latencyMs / 2 - saidMs;
  const seconds = Math.round(Math.abs(offMs) / SECOND_MS);
  if (Math.abs(offMs) <= CLOCK_OFF_MS)
    return line("clock", "ok", `The clocks differ by ${counted(seconds, "second")} at most.`);
  const found = `The clock of the source is ${counted(seconds, "second")} ${offMs > 0 ? "behind" : "ahead of"} this one.`;
  const isCovered = safetyLagMs !== undefined && Math.abs(offMs) < safetyLagMs;
  const advice = isCovered
    ? "`window.safetyLag` covers it. Check the clock of this machine all the same."
    : "Check the clock of this machine, or make `window.safetyLag` longer: windows would be closed too early.";
  return line("clock", "warn", found, advice);
}

const perSecond = (rate: number) => `${rate} ${rate === 1 ? "request" : "requests"} a second`;

function rateLine(
  { headers }: Exchange,
  rateLimit: Snapshot["spec"]["rateLimit"],
  nowMs: number,
  isUndeclared: boolean,
): CheckLine {
  const declared = rateLimit.refillRatePerSec;
  const signal = providerSignal(headers, nowMs, rateLimit.headerWindowMs);
  const own = isUndeclared
    ? `no rate is declared, so there is ${perSecond(declared)}`
    : `${perSecond(declared)} ${declared === 1 ? "is" : "are"} declared`;
  if (!signal) return line("rate", "ok", `The source sends no rate headers; ${own}.`);
  const parts = [
    ...(signal.ratePerSec === undefined ? [] : [perSecond(signal.ratePerSec)]),
    ...(signal.concurrency === undefined ? [] : [`${signal.concurrency} at once`]),
    ...(signal.quotas ?? []).map(({ unit, remaining, limit }) => `${remaining} of ${limit ?? "?"} ${unit} left`),
  ];
  const found = `The source says ${parts.join(", ")}; ${own}.`;
  if (signal.ratePerSec !== undefined && signal.ratePerSec < declared) {
    return line("rate", "warn", found, `Lower \`rateLimit.refillRatePerSec\` to ${signal.ratePerSec}.`);
  }
  const spent = (signal.quotas ?? []).find(({ remaining }) => remaining <= 0);
  if (spent) return line("rate", "warn", found, `The quota of ${spent.unit} is spent: plans wait until it is renewed.`);
  return line("rate", "ok", found);
}
