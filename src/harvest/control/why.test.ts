/** Why a slice that is divided does not finish: what holds its parts up, part by part. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";
import { endOf } from "../harvest.fixture.ts";
import { type Said, type Script, useScripted } from "../run/scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

/** Of the first day 40, twice the cap; of the second day 5. */
const RECORDS = [
  ...Array.from({ length: 15 }, (_, n) => ({ id: `book-${n}`, kind: "book", day: "2026-08-01" })),
  ...Array.from({ length: 18 }, (_, n) => ({ id: `article-${n}`, kind: "article", day: "2026-08-01" })),
  ...Array.from({ length: 7 }, (_, n) => ({ id: `other-${n}`, kind: "other", day: "2026-08-01" })),
  ...Array.from({ length: 5 }, (_, n) => ({ id: `late-${n}`, kind: "book", day: "2026-08-02" })),
];

/** What is answered to a request of a part instead; undefined for what is right. `years` is set where it asks for a part of a kind. */
type React = (part: { kind: string; years: string | null }) => Said | undefined | Promise<Said | undefined>;

/** A correct source of those records. The first request of each kind counts it, so it reacts to those that follow. */
function capped(react: React): Script {
  const counted = new Set<string>();
  return async ({ query }) => {
    const [kind, years] = [query.get("kind"), query.get("years")];
    const [from, to] = [query.get("from") ?? "", query.get("to") ?? ""];
    const isPart = kind !== null && (counted.has(kind) || kind === "!");
    if (kind !== null) counted.add(kind);
    const instead = isPart ? await react({ kind, years }) : undefined;
    if (instead) return instead;
    const isKind = (one: string) => kind === null || (kind === "!" ? one === "other" : one === kind);
    const found = RECORDS.filter((record) => record.day >= from && record.day < to && isKind(record.kind));
    const offset = Number(query.get("offset"));
    return { body: { total: found.length, items: found.slice(offset, offset + 10).map(({ id }) => ({ id })) } };
  };
}

const KIND = {
  name: "kind",
  type: "VALUES",
  values: ["book", "article"],
  fragment: "${range.value}",
  rest: '${range.values.size() > 0 ? "!" : ""}',
};
const CAPPED = {
  window: { recordsMax: 20 },
  response: { updatedAtPath: undefined },
  slicing: { ladder: [KIND] },
  http: {
    query: {
      from: "${window.from}",
      to: "${window.to}",
      offset: "${page.offset}",
      size: "${page.size}",
      kind: "${parts.kind}",
    },
  },
};

interface Slice {
  sliceId: number;
  rootSliceId: number | null;
  parentSliceId: number | null;
  part: { kind?: { value?: string; rest?: string } } | null;
  status: string;
}
interface Cause {
  code: string;
  sentence: string;
  since: string | null;
  until: string | null;
}
const why = async (planId: string, slice: Slice | undefined): Promise<Cause[]> =>
  (await harvests.api.get<{ causes: Cause[] }>(`/api/v1/harvest/plans/${planId}/slices/${slice?.sliceId}/why`)).body
    .causes;
const slicesOf = async (planId: string) =>
  (await harvests.api.get<{ items: Slice[] }>(`/api/v1/harvest/plans/${planId}/slices`)).body.items;

/** Plans the day, and answers the whole slice and its parts by kind once it is divided. */
async function divided(react: React, change: object = {}, days = 1) {
  const source = await harvests.source(capped(react), { ...CAPPED, ...change });
  const planId = await harvests.plan(source, days);
  const parts = await until(async () => {
    const slices = await slicesOf(planId);
    return slices.some(({ part }) => part !== null) && slices;
  }, "the parts");
  const root = parts.find(({ sliceId }) => parts.some(({ rootSliceId }) => rootSliceId === sliceId));
  const of = (kind: string) => parts.find(({ part }) => (part?.kind?.value ?? "other") === kind && part !== null);
  return { source, planId, root, of };
}

/** Holds requests of a kind until they are released. */
function holding(kind: string) {
  const gate = signal();
  const reached = signal();
  const react: React = async (part) => {
    if (part.kind !== kind) return undefined;
    reached.resolve();
    await gate.promise;
    return undefined;
  };
  return { react, reached: reached.promise, release: gate.resolve };
}

const untilCauses = (planId: string, slice: Slice | undefined, code: string) =>
  until(async () => {
    const causes = await why(planId, slice);
    return causes.some((cause) => cause.code === code) && causes;
  }, `the cause ${code}`);

describe("a slice that is divided", () => {
  test("names the part that runs, and of one that waits for its turn how many may run", async () => {
    const held = holding("book");
    const { planId, root, of } = await divided(held.react, { budget: { concurrency: 1 } });
    await held.reached;
    const book = of("book");
    expect(await why(planId, root)).toMatchObject([
      {
        code: "DIVIDED",
        sentence: `It is divided: 3 of 3 parts are open, 0 ended with a gap. Ask for slice ${book?.sliceId}.`,
      },
      {
        code: "RUNNING",
        sentence: expect.stringMatching(
          new RegExp(`^Slice ${book?.sliceId} \\(kind book\\): It runs in .*attempt 1: 0 of 15 records`),
        ) as string,
        since: expect.stringMatching(/Z$/) as string,
      },
    ]);
    expect((await why(planId, of("article"))).map(({ code, sentence }) => [code, sentence])).toEqual([
      ["CONCURRENCY", expect.stringMatching(/^1 task of .* runs, as many as may at once/)],
      ["QUEUE", expect.stringMatching(/^It is due, and 0 tasks of .* go before it\.$/)],
    ]);
    expect((await why(planId, of("other")))[1]?.sentence).toMatch(/^It is due, and 1 task of .* goes before it\.$/);
    held.release();
    await endOf(harvests.api, planId);
    expect(await why(planId, root)).toMatchObject([{ code: "COMPLETE", sentence: "It is complete: 40 records came." }]);
    expect(await why(planId, of("book"))).toMatchObject([
      { code: "COMPLETE", sentence: "It is complete: 15 records came." },
    ]);
  });

  test("names the gate that a part waits for, and until when", async () => {
    const { source, planId, root, of } = await divided(() => ({ status: 429, headers: { "retry-after": "3600" } }));
    const causes = await untilCauses(planId, of("book"), "GATE");
    const gate = {
      code: "GATE",
      sentence: `Waiting for rate gate ${source}: the source asked for a pause of ${source}.`,
      until: expect.stringMatching(/Z$/) as string,
    };
    expect(causes).toMatchObject([gate]);
    expect(Date.parse(causes[0]?.until ?? "") - Date.now()).toBeGreaterThan(3_000_000);
    expect(await why(planId, root)).toMatchObject([
      { code: "DIVIDED" },
      { ...gate, sentence: `Slice ${of("book")?.sliceId} (kind book): ${gate.sentence}` },
    ]);
  });

  test("names the source that is down for one part, and says that the others are complete", async () => {
    const { planId, root, of } = await divided(({ kind }) => (kind === "book" ? { status: 503 } : undefined));
    await untilCauses(planId, of("book"), "SOURCE_DOWN");
    await untilCauses(planId, of("other"), "COMPLETE");
    await untilCauses(planId, of("article"), "COMPLETE");
    expect(await why(planId, root)).toMatchObject([
      {
        code: "DIVIDED",
        sentence: expect.stringMatching(/^It is divided: 1 of 3 parts is open, 0 ended with a gap\./) as string,
      },
      {
        code: "SOURCE_DOWN",
        sentence: expect.stringMatching(/^Slice \d+ \(kind book\): GET .* answered 503/) as string,
        since: expect.stringMatching(/Z$/) as string,
        until: expect.stringMatching(/Z$/) as string,
      },
    ]);
  });

  test("counts the part that failed while another is open, and ends INCOMPLETE with its reason", async () => {
    const held = holding("article");
    const { planId, root, of } = await divided((part) => (part.kind === "book" ? { status: 400 } : held.react(part)));
    await held.reached;
    await untilCauses(planId, of("book"), "FAILED");
    await untilCauses(planId, of("other"), "COMPLETE");
    expect((await why(planId, root))[0]).toMatchObject({
      code: "DIVIDED",
      sentence: `It is divided: 1 of 3 parts is open, 1 ended with a gap. Ask for slice ${of("article")?.sliceId}.`,
    });
    held.release();
    await endOf(harvests.api, planId);
    expect(await why(planId, root)).toMatchObject([
      {
        code: "INCOMPLETE",
        sentence: expect.stringMatching(
          /^It ended INCOMPLETE: 1 of 3 parts is not complete\. The first: GET .* answered 400/,
        ) as string,
      },
    ]);
    expect(await why(planId, of("book"))).toMatchObject([
      { code: "FAILED", sentence: expect.stringContaining("answered 400") as string },
    ]);
    await harvests.api.post(`/api/v1/harvest/plans/${planId}/slices/${root?.sliceId}:accept`, { reason: "not needed" });
    expect((await why(planId, root))[0]?.sentence).toMatch(/ MILLRACE_ADMIN_KEY has accepted the gap\.$/);
  });

  test("says of its parts that they are paused, or stop after their page, and that they were cancelled with it", async () => {
    const held = holding("book");
    const { source, planId, root, of } = await divided(held.react, { budget: { concurrency: 1 } });
    await held.reached;
    await harvests.api.post(`/api/v1/harvest/sources/${source}:pause`, { reason: "maintenance" });
    const paused = expect.stringMatching(
      new RegExp(`${source} is paused by MILLRACE_ADMIN_KEY since .*: maintenance`),
    ) as string;
    expect(await why(planId, root)).toMatchObject([
      { code: "DIVIDED" },
      { code: "RUNNING" },
      { code: "PAUSED", sentence: paused },
    ]);
    expect((await why(planId, root))[2]?.sentence).toMatch(/; it stops after this page\.$/);
    expect((await why(planId, of("article")))[0]).toMatchObject({ code: "PAUSED", sentence: paused });
    await harvests.api.post(`/api/v1/harvest/plans/${planId}/slices/${root?.sliceId}:cancel`);
    const cancelled = { code: "CANCELLED", sentence: "It was cancelled by MILLRACE_ADMIN_KEY." };
    expect(await why(planId, root)).toMatchObject([cancelled]);
    expect(await why(planId, of("article"))).toMatchObject([cancelled]);
    held.release();
    await endOf(harvests.api, planId);
  });

  test("of a window that was split in time counts once, and its parts are told after it", async () => {
    const held = holding("book");
    const { planId, root, of } = await divided(held.react, { window: { recordsMax: 20, maxWindow: "P2D" } }, 2);
    await held.reached;
    const [split] = await slicesOf(planId);
    await until(
      async () => (await slicesOf(planId)).some(({ status, part }) => status === "COMPLETE" && part === null),
      "the second day",
    );
    expect(await why(planId, split)).toMatchObject([
      {
        code: "SPLIT",
        sentence: expect.stringMatching(
          new RegExp(`: 1 of 2 parts is open, 0 ended with a gap\\. Ask for slice ${root?.sliceId}\\.$`),
        ) as string,
      },
      {
        code: "DIVIDED",
        sentence: expect.stringMatching(new RegExp(`^Slice ${root?.sliceId}: It is divided: `)) as string,
      },
      {
        code: "RUNNING",
        sentence: expect.stringMatching(new RegExp(`^Slice ${of("book")?.sliceId} \\(kind book\\): `)) as string,
      },
    ]);
    held.release();
    await endOf(harvests.api, planId);
    expect((await why(planId, split)).map(({ code, sentence }) => [code, sentence])).toEqual([
      ["SPLIT", expect.stringMatching(/: 0 of 2 parts are open, 0 ended with a gap\.$/)],
    ]);
  });

  test("tells of the parts of a part that was divided further", async () => {
    const held = signal();
    const grown = (total: number): Said => ({ body: { total, items: [] } });
    const react: React = async ({ kind, years }) => {
      if (kind !== "book") return undefined;
      if (years === null) return grown(25);
      if (years === "2000-2001") return grown(25);
      const isCount = !counted.has(years);
      counted.add(years);
      if (isCount && years === "2000-2000") return grown(12);
      await held.promise;
      return grown(0);
    };
    const counted = new Set<string>();
    const years = { name: "years", type: "NUMBER", from: 2000, until: 2001, fragment: "${range.from}-${range.until}" };
    const { planId, root, of } = await divided(react, {
      slicing: { ladder: [...CAPPED.slicing.ladder, years] },
      http: { query: { ...CAPPED.http.query, years: "${parts.years}" } },
    });
    await untilCauses(planId, of("article"), "COMPLETE");
    await untilCauses(planId, of("other"), "COMPLETE");
    const causes = await untilCauses(planId, of("book"), "SPLIT");
    expect(causes[0]?.sentence).toMatch(
      /^It was split \(the part kind book has 25 records.*: 2 of 2 parts are open, 0 ended with a gap\./,
    );
    expect(causes[1]?.sentence).toMatch(/^Slice \d+ \(kind book, years 2000\): /);
    expect((await why(planId, root))[0]?.sentence).toMatch(
      /^It is divided: 2 of 4 parts are open, 0 ended with a gap\./,
    );
    held.resolve();
    await endOf(harvests.api, planId);
  });
});
