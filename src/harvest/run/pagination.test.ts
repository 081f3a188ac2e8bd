/** Every way of paging, and sources that do not keep to theirs: whatever comes, a slice ends, and nothing is missing in silence. */
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { type Asked, correct, itemsOf, type Said, type TestItem, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);
const ITEMS = itemsOf(35);
const KEYS = ITEMS.map(({ id }) => id);

/** Ten items from `start` on. */
function page(start: number, more: object = {}): Said {
  return { body: { total: ITEMS.length, items: ITEMS.slice(start, start + 10), ...more } };
}

async function isExact(script: (request: Asked) => Said, change: Record<string, unknown>, more = {}): Promise<void> {
  const source = await harvests.source(script, change, more);
  const ended = await harvests.harvest(source);
  expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 35, inserted: 35, gaps: 0 } });
  expect(await harvests.keys(source)).toEqual(KEYS);
}

const window = { from: "${window.from}", to: "${window.to}" };

describe("a list is read to its end", () => {
  test("by offset", () => isExact(({ query }) => page(Number(query.get("offset"))), {}));

  test.each([0, 1] as const)("by page numbers from %i on, in a form", (base) =>
    isExact(
      ({ method, body }) => {
        const form = new URLSearchParams(body);
        if (method !== "POST" || form.get("from") !== "2026-08-01") return { status: 400, body: {} };
        return page((Number(form.get("page")) - base) * 10);
      },
      {
        method: "POST",
        http: { query: undefined, form: { ...window, page: "${page.number}" } },
        pagination: { type: "PAGE", base, pageSize: 10 },
      },
    ),
  );

  test("by tokens, in a JSON body, with a token on the last page", () =>
    isExact(
      ({ body }) => {
        const { token, from } = JSON.parse(body) as { token?: string; from: string };
        if (from !== "2026-08-01") return { status: 400, body: {} };
        const start = token === undefined ? 0 : Number(token.slice(1));
        return page(start, { next: `t${start + 10}` });
      },
      {
        method: "POST",
        http: { query: undefined, json: { ...window, token: "${page.token}" } },
        pagination: { type: "TOKEN", tokenClass: "REPEATABLE", nextTokenPath: "$.next", pageSize: 10 },
      },
    ));

  test("by the URL of the next page", () =>
    isExact(
      ({ query }) => {
        const start = Number(query.get("start") ?? 0);
        return page(start, start + 10 < 35 ? { next: `items?from=2026-08-01&start=${start + 10}` } : {});
      },
      {
        http: { query: window },
        pagination: { type: "URL", tokenClass: "REPEATABLE", nextUrlPath: "$.next", pageSize: 10 },
      },
    ));

  test("by the time of the last record, also where a page ends among records of one second", async () => {
    const items = ITEMS.map((item, index) => ({ ...item, updated: ITEMS[Math.floor(index / 3) * 3]?.updated ?? "" }));
    const script = ({ query }: Asked): Said => {
      const left = items.filter(({ updated }) => Date.parse(updated) >= Date.parse(`${query.get("from")}`));
      return { body: { total: left.length, items: left.slice(0, 10) } };
    };
    await isExact(script, {
      http: { query: window },
      pagination: { type: "TIME", pageSize: 10, orderBy: "updated" },
      window: { granularity: "PT1S", format: "iso", minWindow: "P1D", monotone: true },
    });
    const [slice] = await database.query<{ expected: number }>(
      "select expected::int from harvest.ing_plan_slice order by slice_id desc limit 1",
    );
    expect(slice?.expected).toBe(35); // Not what was left at the last page.
  });

  test("although a page in the middle is short", () =>
    isExact(
      ({ query }) => {
        const start = Number(query.get("token") ?? 0);
        const size = start === 10 ? 3 : 10;
        const next = start + size;
        return { body: { total: 35, items: ITEMS.slice(start, next), ...(next < 35 ? { next: String(next) } : {}) } };
      },
      {
        http: { query: { ...window, token: "${page.token}" } },
        pagination: { type: "TOKEN", tokenClass: "REPEATABLE", nextTokenPath: "$.next", pageSize: 10 },
      },
    ));
});

describe("a key is sent", () => {
  const more = { credentials: { key: { secret: "KEY" } } };
  const value = "an-open-secret-of-the-tests";
  test.each([
    ["in a header", { type: "API_KEY", location: "HEADER", name: "X-Key" }, ({ headers }: Asked) => headers["x-key"]],
    ["in the query", { type: "API_KEY", location: "QUERY", name: "key" }, ({ query }: Asked) => query.get("key")],
    ["as a bearer token", { type: "BEARER", location: "HEADER", name: "Authorization" }, bearer],
  ])("%s", async (_, auth, found) => {
    await harvests.api.put("/api/v1/secrets/KEY", { value });
    const script = (request: Asked): Said =>
      found(request) === value ? page(Number(request.query.get("offset"))) : { status: 401, body: {} };
    await isExact(script, { auth: { ...auth, credential: "key", required: true } }, more);
  });

  test.each(["form", "json"])("in a body that is %s", async (kind) => {
    await harvests.api.put("/api/v1/secrets/KEY", { value });
    const script = ({ body }: Asked): Said => {
      const fields = kind === "form" ? Object.fromEntries(new URLSearchParams(body)) : JSON.parse(body);
      return fields.key === value ? page(Number(fields.offset)) : { status: 401, body: {} };
    };
    const fields = { ...window, offset: "${page.offset}" };
    const http = { query: undefined, [kind]: fields };
    const auth = { type: "API_KEY", location: "BODY", name: "key", credential: "key", required: true };
    await isExact(script, { method: "POST", http, auth }, more);
  });

  function bearer({ headers }: Asked): string | undefined {
    return headers.authorization?.replace("Bearer ", "");
  }
});

describe("a source that repeats itself", () => {
  const tokens = {
    http: { query: { ...window, token: "${page.token}" } },
    pagination: { type: "TOKEN", tokenClass: "REPEATABLE", nextTokenPath: "$.next", pageSize: 10 },
  };
  const looping = (announced: number | undefined) => {
    let no = 0;
    return ({ query }: Asked): Said => {
      no += 1;
      const start = Math.min(Number(/^\d+/.exec(query.get("token") ?? "0")?.[0]), 20);
      const next = `${Math.min(start + 10, 20)}-${no}`; // Another token each time, and the last full page for ever.
      return {
        body: { ...(announced === undefined ? {} : { total: announced }), items: ITEMS.slice(start, start + 10), next },
      };
    };
  };

  test("is stopped by content, whatever its tokens say", async () => {
    const source = await harvests.source(looping(undefined), { ...tokens, response: { totalPath: undefined } });
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "FAILED", reconciliation: { received: 30, gaps: 1 } });
    expect(ended["gapWindows"]).toMatchObject([{ reason: expect.stringMatching(/^PAGINATION_STALLED: page 4 /) }]);
    expect(harvests.server.asked(source)).toHaveLength(4);
  });

  test("is complete where all that it announced has come", async () => {
    const source = await harvests.source(looping(30), tokens);
    expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE", reconciliation: { received: 30 } });
  });

  test("is stopped where two pages take turns", async () => {
    let no = 0;
    const source = await harvests.source(
      () => {
        no += 1;
        return { body: { items: ITEMS.slice((no % 2) * 10, (no % 2) * 10 + 10), next: `t${no}` } };
      },
      { ...tokens, response: { totalPath: undefined } },
    );
    const ended = await harvests.harvest(source);
    expect(ended["gapWindows"]).toMatchObject([{ reason: expect.stringContaining("PAGINATION_STALLED") }]);
    expect(harvests.server.asked(source)).toHaveLength(5); // Two that are new, and three in a row that are not.
  });

  test("is stopped where a full page has one time only", async () => {
    const same: TestItem[] = itemsOf(25).map((item) => ({ ...item, updated: "2026-08-01T00:00:00.000Z" }));
    const source = await harvests.source(() => ({ body: { items: same.slice(0, 10) } }), {
      http: { query: window },
      pagination: { type: "TIME", pageSize: 10, orderBy: "updated" },
      window: { granularity: "PT1S", format: "iso", minWindow: "P1D", monotone: true },
      response: { totalPath: undefined },
    });
    const ended = await harvests.harvest(source);
    expect(ended["gapWindows"]).toMatchObject([{ reason: expect.stringContaining("PAGINATION_STALLED") }]);
  });
});

describe("a total that moves while a list is read", () => {
  test("and is too low once is not the end of the list", async () => {
    let lowOnce = 1;
    const source = await harvests.source((request) => {
      const said = correct(ITEMS.slice(0, 31))(request) as { body: { total: number } };
      const isLow = request.query.get("offset") === "20" && lowOnce > 0;
      if (isLow) lowOnce -= 1;
      return { body: { ...said.body, total: said.body.total - Number(isLow) } };
    });
    expect(await harvests.harvest(source)).toMatchObject({
      status: "COMPLETE",
      reconciliation: { expected: 31, received: 31, gaps: 0 },
    });
  });
});

describe("a source that leaves records out", () => {
  const script = (request: Asked): Said => {
    const said = correct(itemsOf(173))(request) as Said & { body: { total: number } };
    said.body.total = 174;
    return said;
  };

  test("is read again, and then it is a gap", async () => {
    const source = await harvests.source(script, { pagination: { pageSize: 50 } });
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "FAILED", reconciliation: { expected: 174, received: 173, gaps: 1 } });
    // Each of the three restarts brings all of it again.
    expect(ended).toMatchObject({
      reconciliation: { repeated: 519, inserted: 173, unchanged: 519, updated: 0, deleted: 0 },
    });
    expect(ended["gapWindows"]).toMatchObject([{ status: "INCOMPLETE", missing: 1 }]);
    const [slice] = await harvests.slices(ended.planId);
    expect(slice).toMatchObject({
      generation: 4,
      reason: expect.stringContaining("announced 174 records, and 173 came"),
    });
    const cursors = await database.query("select from harvest.ing_cursor where provenance_code = $1", [source]);
    expect(cursors).toEqual([]);
  });

  test("is complete where its definition allows for that", async () => {
    const source = await harvests.source(script, { pagination: { pageSize: 50 }, window: { tolerance: 1 } });
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 173 } });
    expect(await harvests.slices(ended.planId)).toMatchObject([{ generation: 1 }]);
  });
});
