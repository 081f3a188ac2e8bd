import { describe, expect, test } from "vitest";
import type { PaginationSpec } from "../spec/snapshot.ts";
import { canResume, firstPosition, nextPosition, type PageFacts, type Position } from "./position.ts";

function pagination(more: Partial<PaginationSpec>): { pagination: PaginationSpec } {
  return { pagination: { type: "TOKEN", pageSize: 100, tokenClass: "REPEATABLE", stalledPages: 3, ...more } };
}

function facts(more: Partial<PageFacts>): PageFacts {
  return {
    items: 100,
    total: undefined,
    nextToken: undefined,
    nextUrl: undefined,
    hasMore: undefined,
    latest: undefined,
    ...more,
  };
}

const first: Position = { pageNo: 1 };

describe("tokens", () => {
  const tokens = pagination({ type: "TOKEN", initial: "*" });

  test("begin with the initial one", () => {
    expect(firstPosition(tokens)).toEqual({ pageNo: 1, token: "*" });
  });

  test("go on with the token of the page, even if it is the same and the page is short", () => {
    expect(nextPosition(tokens, { pageNo: 1, token: "x" }, facts({ items: 19, nextToken: "x" }))).toEqual({
      kind: "page",
      position: { pageNo: 2, token: "x" },
    });
  });

  test.each([
    ["no token", facts({ nextToken: undefined })],
    ["null", facts({ nextToken: null })],
    ["an empty one", facts({ nextToken: "" })],
    ["an empty page with a token", facts({ items: 0, nextToken: "x" })],
    ["no more by its own word", facts({ hasMore: false, nextToken: "x" })],
  ])("end with %s", (_name, page) => {
    expect(nextPosition(tokens, first, page)).toEqual({ kind: "end" });
  });
});

describe("offsets", () => {
  const offsets = pagination({ type: "OFFSET" });

  test("go on by what the page says that it has, where the source decides how long a page is", () => {
    const decided = pagination({ type: "OFFSET", countPath: "$.count" });
    const at = (more: Partial<PageFacts>) => nextPosition(decided, { pageNo: 1, offset: 60 }, facts(more));
    expect(at({ items: 29, count: 30 })).toMatchObject({ position: { offset: 90 } });
    expect(at({ items: 30 })).toMatchObject({ position: { offset: 90 } });
    expect(at({ items: 30, count: 30, total: 90 })).toEqual({ kind: "end" });
  });

  test("advance by what was asked for, not by what came", () => {
    expect(nextPosition(offsets, { pageNo: 1, offset: 0 }, facts({ items: 97, total: 250 }))).toEqual({
      kind: "page",
      position: { pageNo: 2, offset: 100 },
    });
  });

  test("end with the announced total, or with an empty page if there is none", () => {
    const third: Position = { pageNo: 3, offset: 200 };
    expect(nextPosition(offsets, third, facts({ items: 50, total: 250 }))).toEqual({ kind: "end" });
    expect(nextPosition(offsets, third, facts({ items: 50 })).kind).toBe("page");
    expect(nextPosition(offsets, third, facts({ items: 0 }))).toEqual({ kind: "end" });
  });

  test("are too deep behind the last page that the source serves", () => {
    const limited = pagination({ type: "PAGE", base: 1, maxPage: 3 });
    expect(nextPosition(limited, { pageNo: 3, offset: 200 }, facts({ total: 1_000 }))).toMatchObject({
      kind: "too deep",
    });
    expect(nextPosition(limited, { pageNo: 3, offset: 200 }, facts({ total: 300 }))).toEqual({ kind: "end" });
  });
});

describe("times", () => {
  test("go on at the latest record, in whole units", () => {
    const times = {
      ...pagination({ type: "TIME" }),
      window: { granularityMs: 1_000 } as never,
    };
    const latest = new Date("2026-08-20T10:00:00.750Z");
    expect(nextPosition(times, first, facts({ latest }))).toEqual({
      kind: "page",
      position: { pageNo: 2, time: "2026-08-20T10:00:00.000Z" },
    });
    expect(nextPosition(times, first, facts({ items: 0 }))).toEqual({ kind: "end" });
  });
});

describe("a run that continues", () => {
  const at: Position = { pageNo: 4, token: "x" };

  test("uses a repeatable token, however old", () => {
    expect(canResume(pagination({}), at, 1e12).resume).toBe(true);
  });

  test("uses a token that can be used once only after a run that ended with nothing under way", () => {
    const once = pagination({ tokenClass: "SINGLE_USE", tokenTtlMs: 300_000 });
    expect(canResume(once, at, 10)).toMatchObject({ resume: false });
    expect(canResume(once, { ...at, isClean: true }, 10).resume).toBe(true);
    expect(canResume(once, { ...at, isClean: true }, 300_000)).toMatchObject({ resume: false });
    expect(canResume(once, { pageNo: 9, isListed: true }, 1e12).resume).toBe(true);
  });

  test("does not use an expired token", () => {
    const expiring = pagination({ tokenClass: "EXPIRING", tokenTtlMs: 1_000 });
    expect(canResume(expiring, at, 999).resume).toBe(true);
    expect(canResume(expiring, at, 1_000)).toMatchObject({ resume: false });
  });
});
