import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import type { PlanDetail } from "../cli/harvest/api.ts";
import type { Api } from "./api.ts";
import { harvestAll } from "./harvest.ts";
import { SOURCE_NAMES } from "./sources.ts";

const DAYS = ["2026-11-01", "2026-11-02", "2026-11-03"];

function planOf(source: string, daysDone: number): PlanDetail {
  const records = 10 * daysDone;
  const isEnded = daysDone === DAYS.length;
  return {
    planId: source,
    status: isEnded ? "COMPLETE" : "READY",
    endedAt: isEnded ? "2026-11-05T00:00:00Z" : null,
    slices: { READY: DAYS.length - daysDone, COMPLETE: daysDone },
    tasks: {},
    reconciliation: { expected: 30, received: records, quarantined: 0, gaps: 0 },
    unslicedFrom: null,
    window: null,
  } as unknown as PlanDetail;
}

/** Each source finishes a day after the other, and all take turns. */
const api = {
  post: (_path: string, { source }: { source: string }) => Promise.resolve({ planId: source }),
  async harvested(planId: string, onPlan: (plan: PlanDetail) => void) {
    for (let done = 0; done <= DAYS.length; done += 1) {
      onPlan(planOf(planId, done));
      await Promise.resolve();
    }
    return planOf(planId, DAYS.length);
  },
} as unknown as Api;

async function harvested(isTerminal: boolean) {
  const printed: string[] = [];
  /** What stood below the printed lines, each time that it was redrawn. */
  const drawn: string[][] = [];
  const output = {
    print: () => undefined,
    draw: isTerminal ? (lines: readonly string[]) => void drawn.push(lines.map(stripVTControlCharacters)) : undefined,
    columns: () => 80,
  };
  const sources = { get: () => undefined } as never;
  const plans = await harvestAll({ api, sources, output, printLine: (line) => void printed.push(line) }, DAYS);
  return { plans, printed, drawn };
}

test("on a terminal, each source has a line with its days until it has landed", async () => {
  const { plans, printed, drawn } = await harvested(true);
  expect(plans).toEqual({ crossref: "crossref", pubmed: "pubmed", arxiv: "arxiv" });
  const days = drawn.flatMap((lines) => lines.flatMap((line) => /^crossref .*(\d) of 3 days/.exec(line)?.[1] ?? []));
  expect(days).toEqual(days.toSorted());
  expect([...new Set(days)]).toEqual(["0", "1", "2", "3"]);
  expect(Math.max(...drawn.map((lines) => lines.length))).toBe(SOURCE_NAMES.length);
  // One source after the other, and nothing is left.
  expect(drawn.slice(-4).map((lines) => lines.length)).toEqual([2, 1, 0, 0]);
  expect(printed.slice(1)).toEqual([
    "crossref: 3 of 3 days, 30 records, landed in crossref_works",
    "pubmed: 3 of 3 days, 30 records, landed in pubmed_articles",
    "arxiv: 3 of 3 days, 30 records, landed in arxiv_records",
  ]);
});

test("in a log, the first change of a source is printed at once, and the next ones not before a few seconds", async () => {
  const { printed } = await harvested(false);
  expect(printed.filter((line) => line.startsWith("crossref"))).toEqual([
    "crossref: 1 of 3 days, 10 records",
    "crossref: 3 of 3 days, 30 records, landed in crossref_works",
  ]);
});
