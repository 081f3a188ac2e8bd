import * as fc from "fast-check";
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import type { Json } from "../events.fixture.ts";
import { testLineage } from "../lineage.fixture.ts";
import { anyBaseline, anyEvent, sourceOf } from "./stories.fixture.ts";

const database = useDatabase();
const lineage = testLineage(database);

const IS_LONG = process.env["MILLRACE_TEST_LONG"] !== undefined;
const RUNS = IS_LONG ? 1_000 : 20;
/** The short run tells the same stories each time; the long one looks for new ones. */
const SEED = 20_260_301;
const EVENTS_MAX = IS_LONG ? 24 : 12;

interface Step {
  event: Json;
  /** Of a full sync. */
  baseline: boolean;
}

/** Once in so many times; else null. */
function once<T>(times: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.oneof({ weight: 1, arbitrary }, { weight: times - 1, arbitrary: fc.constant(null) });
}

/** Events with times; the order of the list is the order of time, mostly: some share a moment, some tell the same again. */
const story = fc
  .array(
    fc.record({
      event: anyEvent(),
      listing: once(8, anyBaseline()),
      after: fc.constantFrom(0, 1, 1, 1, 1),
      again: once(4, fc.nat({ max: EVENTS_MAX - 1 })),
    }),
    { minLength: 2, maxLength: EVENTS_MAX, size: "max" },
  )
  .map((steps) => {
    let second = 0;
    return steps.map(({ event, listing, after, again }): Step => {
      second += after;
      const told = listing ?? (again === null ? undefined : steps[again]?.event) ?? event;
      const eventTime = `2026-03-01T10:00:${String(second).padStart(2, "0")}Z`;
      return { event: { ...told, eventTime }, baseline: listing !== null };
    });
  });
const arrival = fc.record({
  order: fc.array(fc.nat(), { minLength: EVENTS_MAX, maxLength: EVENTS_MAX }),
  together: fc.integer({ min: 1, max: 4 }),
});

/** What a person needs of an event to understand a failure. */
function inShort({ event, baseline }: Step): string {
  const { eventTime, eventType, job, inputs, outputs, dataset } = event;
  const texts = [inputs, outputs, dataset].map((list) =>
    (JSON.stringify(list) ?? "").replaceAll(/"_(producer|schemaURL)":"[^"]*",?/g, ""),
  );
  const { name, facets } = (job ?? {}) as { name?: string; facets?: object };
  const parts = [String(eventTime).slice(17, 19), eventType, baseline && "BASELINE", name, JSON.stringify(facets)];
  return [...parts, ...texts].join(" ");
}

async function sendAll(steps: readonly Step[], together: number) {
  const tenant = await lineage.tenant();
  const states = new Set<string>();
  for (let start = 0; start < steps.length; start += together) {
    const some = steps.slice(start, start + together);
    const taken = await Promise.all(
      some.map(({ event, baseline }) => lineage.send(tenant, event, { source: sourceOf(event), baseline })),
    );
    for (const { state } of taken) states.add(state);
  }
  return { states: [...states], graph: await lineage.graph(tenant), flaws: await lineage.flaws(tenant) };
}

test("the graph is the same whatever the order in which events arrive, one by one or together", {
  timeout: RUNS * 5_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(story, arrival, async (events, { order, together }) => {
      const shuffled = events
        .map((one, index) => ({ one, rank: order[index] ?? 0 }))
        .sort((a, b) => a.rank - b.rank)
        .map(({ one }) => one);
      const atOnce = await sendAll(events, EVENTS_MAX);
      expect(atOnce).toMatchObject({ states: ["APPLIED"], flaws: [] });
      expect(await sendAll(events, 1), `in order\n${events.map(inShort).join("\n")}\n`).toEqual(atOnce);
      expect(await sendAll(shuffled, together), `\n${shuffled.map(inShort).join("\n")}\n`).toEqual(atOnce);
    }),
    { numRuns: RUNS, ...(IS_LONG ? {} : { seed: SEED }) },
  );
});
