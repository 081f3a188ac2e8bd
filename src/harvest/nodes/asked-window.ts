/** The window of a `harvest` node: an opTime, a date, or what a plan takes. */
import { FinalFailure } from "../../chains/index.ts";
import { endOfOpTime, grainOf, movedOpTime } from "../../kernel/time/op-time.ts";
import type { AskedWindow } from "../plan/range.ts";
import { closedUntil, closesAt, type Range } from "../plan/window.ts";
import type { WindowSpec } from "../spec/snapshot.ts";

/** As the cfg of a node has it. */
export type NodeWindow = string | AskedWindow;

/** The hour, day or month that an opTime names in the time zone of the source. `2026-08-01` is the day 20260801. */
export function rangeOfOpTime(opTime: string, timeZone: string): Range {
  const label = /^\d{4}-\d\d-\d\d$/.test(opTime) ? opTime.replaceAll("-", "") : opTime;
  const grain = grainOf(label);
  const before = grain && movedOpTime(label, grain, -1);
  if (!grain || before === undefined) {
    throw new FinalFailure(
      `The window \`${opTime}\` is no hour, day or month like 2026082007, 20260820 or 202608: set \`window\` to one, or to {from, to} or {last}.`,
    );
  }
  const [from, to] = [before, label].map((one) => new Date(endOfOpTime(one, grain, timeZone))) as [Date, Date];
  if (from < to) return { from, to };
  throw new FinalFailure(`The hour ${opTime} does not exist in ${timeZone}: the clocks skip it.`);
}

/**
 * Nodes after this one take the window for whole, so it is not shortened to what can be closed by now. The failure is not
 * final: a later attempt may find it closed.
 */
export function requireClosed(window: WindowSpec, { to }: Range, now: Date): void {
  if (closedUntil(window, now) >= to) return;
  const at = closesAt(window, new Date(to.getTime() - 1));
  throw new Error(
    `The window up to ${shown(to)} can be closed at ${shown(at)}, not before. Start the run later, or give the node \`retry\`.`,
  );
}

function shown(at: Date): string {
  return at.toISOString().replace(".000Z", "Z");
}
