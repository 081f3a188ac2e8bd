/** The connection check: what it says of a source, and that it leaves nothing behind. */
import { expect, test, vi } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { signal } from "../../../test/until.ts";
import { endOf, plan } from "../harvest.fixture.ts";
import { correct, itemsOf, type Said, type Script, useScripted } from "../run/scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

interface Checked {
  verdict: string;
  lines: { name: string; verdict: string; found: string; advice: string | null }[];
}
async function check(source: string, request: object = {}): Promise<Checked> {
  const { status, body } = await harvests.api.post<Checked>(`/api/v1/harvest/sources/${source}:check`, request);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}
const lineOf = (checked: Checked, name: string) => checked.lines.find((line) => line.name === name);
/** A day is closed ten minutes after its end, the default of `safetyLag`. */
const SAFETY_LAG_MS = 600_000;
/** The day that the window of a check ends with, or one before it. */
const dayBefore = (days: number) => new Date(Date.now() - SAFETY_LAG_MS - days * 86_400_000).toISOString().slice(0, 10);
/** As if the window had records of the last closed day. */
const recent = (count: number): Script => correct(itemsOf(count, dayBefore(1)));
const rows = () =>
  database.query(
    `select (select count(*) from harvest.ing_plan) as plans, (select count(*) from harvest.ing_plan_slice) as slices,
            (select count(*) from harvest.ing_task) as tasks, (select count(*) from harvest.record) as records,
            (select count(*) from harvest.ing_cursor) as cursors, (select count(*) from harvest.body) as bodies,
            (select count(*) from harvest.quarantine) as quarantine, (select count(*) from harvest.landing) as landings,
            (select count(*) from harvest.ing_schedule_instance) as triggers, (select count(*) from kernel.audit_log) as audit`,
  );

test("a source that works is ok in all lines, is asked once for a small page, and nothing is written", async () => {
  const source = await harvests.source(recent(25), { pagination: { type: "OFFSET", pageSize: 1_000 } });
  const before = await rows();
  const checked = await check(source);
  expect(await rows()).toEqual(before);
  expect(checked.lines.map(({ name, verdict }) => `${name} ${verdict}`)).toEqual([
    "address ok",
    "connection warn",
    "credential ok",
    "page ok",
    "clock ok",
    "rate ok",
  ]);
  expect(lineOf(checked, "page")?.found).toMatch(/^10 records of \S+ to \S+, a total of 25\.$/);
  expect(lineOf(checked, "connection")?.found).toMatch(/^The source answered 200 in \d+ ms without TLS\.$/);
  expect(lineOf(checked, "connection")?.advice).toContain("everyone on the way can read it");
  expect(checked.verdict).toBe("warn");
  const asked = harvests.server.asked(source);
  expect(asked).toHaveLength(1);
  expect(asked[0]?.query.get("size")).toBe("10");
});

test("an endpoint that needs a parameter is asked with the value that is given, and refused without one", async () => {
  const source = await harvests.source(recent(1), {
    params: [{ name: "term", required: true }],
    http: { query: { from: "${window.from}", to: "${window.to}", offset: "${page.offset}", term: "${params.term}" } },
  });
  const refused = await harvests.api.post<{ error: string }>(`/api/v1/harvest/sources/${source}:check`);
  expect(refused.status).toBe(400);
  expect(refused.body.error).toContain("params.term: It is required and has no value.");
  expect(lineOf(await check(source, { params: { term: "asthma" } }), "page")).toMatchObject({ verdict: "ok" });
  expect(harvests.server.asked(source).map(({ query }) => query.get("term"))).toEqual(["asthma"]);
});

test("an endpoint that answers the records of ids is asked for the one that is named, or for one that is known", async () => {
  const source = await harvests.source(
    ({ query }) => ({ body: { items: [{ id: query.get("ids"), updated: "2026-08-01T00:00:00Z" }] } }),
    {
      enumerator: "ExistingSet",
      window: undefined,
      pagination: undefined,
      http: { query: { ids: '${ids.join(",")}' } },
      response: { totalPath: undefined },
    },
  );
  const refused = await harvests.api.post<{ error: string }>(`/api/v1/harvest/sources/${source}:check`);
  expect(refused).toMatchObject({
    status: 400,
    body: { error: "The field `id`: items answers the records of ids, and none is known yet: name one." },
  });
  expect(lineOf(await check(source, { id: "named" }), "page")).toMatchObject({
    verdict: "ok",
    found: "1 record of the id named, no total.",
  });
  const { planId } = await plan(harvests.api, { source, operation: "UPDATE", ids: ["known"] });
  expect(await endOf(harvests.api, planId)).toMatchObject({ status: "COMPLETE" });
  expect(lineOf(await check(source), "page")?.found).toBe("1 record of the id known, no total.");
  expect(harvests.server.asked(source).map(({ query }) => query.get("ids"))).toEqual(["named", "known", "known"]);
  const other = await harvests.source(recent(1));
  const listed = await harvests.api.post(`/api/v1/harvest/sources/${other}:check`, { id: "x" });
  expect(listed.status).toBe(400);
});

test("it waits for its turn at the gate of the source", async () => {
  const source = await harvests.source(recent(1));
  await check(source);
  const gates = await harvests.api.get<{ items: { key: string }[] }>("/api/v1/gates");
  expect(gates.body.items.map(({ key }) => key)).toContain(source);
  await database.query("update kernel.rate_gate set cooldown_until = now() + interval '1 hour' where key = $1", [
    source,
  ]);
  await new Promise((resolve) => setImmediate(resolve));
  const closed = await check(source);
  expect(harvests.server.asked(source)).toHaveLength(1);
  expect(lineOf(closed, "connection")).toMatchObject({
    verdict: "fail",
    found: expect.stringContaining(`No request was sent: the source asked for a pause of ${source}`) as string,
  });
});

test("a credential that is missing or refused fails, with what to do, and its value is not told", async () => {
  const auth = { auth: { type: "API_KEY", location: "HEADER", name: "x-api-key", credential: "key", required: true } };
  const missing = await harvests.source(recent(1), auth, { credentials: { key: { env: "NOT_SET_AT_ALL" } } });
  expect(lineOf(await check(missing), "credential")).toMatchObject({
    verdict: "fail",
    found: expect.stringContaining("the environment variable NOT_SET_AT_ALL of this process is not set") as string,
    advice: expect.stringContaining("worker") as string,
  });
  expect(harvests.server.asked(missing)).toEqual([]);
  const first = { advice: "The credential comes first." };
  await harvests.api.put("/api/v1/secrets/SHORT_KEY", { value: "short" });
  const short = await check(await harvests.source(recent(1), auth, { credentials: { key: { secret: "SHORT_KEY" } } }));
  expect(lineOf(short, "connection")).toMatchObject({ verdict: "warn", found: "No request was sent.", ...first });
  expect(lineOf(short, "credential")).toMatchObject({
    verdict: "fail",
    found: expect.stringContaining("has fewer than") as string,
  });
  expect(lineOf(short, "page")).toMatchObject({ verdict: "fail", ...first });

  await harvests.api.put("/api/v1/secrets/SHOP_KEY", { value: "a-key-of-the-shop" });
  let isAccepted = true;
  const source = await harvests.source(
    (asked) => (isAccepted ? recent(1)(asked) : { status: 401, body: { key: "a-key-of-the-shop" } }),
    auth,
    {
      credentials: { key: { secret: "SHOP_KEY" } },
    },
  );
  const accepted = await check(source);
  expect(lineOf(accepted, "credential")).toMatchObject({
    verdict: "ok",
    found: expect.stringContaining("was accepted") as string,
  });
  expect(harvests.server.asked(source)[0]?.headers["x-api-key"]).toBe("a-key-of-the-shop");
  isAccepted = false;
  const refused = await check(source);
  expect(refused.verdict).toBe("fail");
  expect(lineOf(refused, "credential")).toMatchObject({
    verdict: "fail",
    found: "`key` has a value, and the source answered 401.",
  });
  expect(lineOf(refused, "connection")).toMatchObject({ found: expect.stringContaining("answered 401") as string });
  expect(lineOf(refused, "page")).toMatchObject({ verdict: "fail", ...first });
  const undeclared = await check(await harvests.source(() => ({ status: 403, body: {} })));
  expect(lineOf(undeclared, "credential")).toMatchObject({
    verdict: "fail",
    found: "The endpoint declares none, and the source answered 403.",
  });
  expect(JSON.stringify([accepted, refused])).not.toContain("a-key-of-the-shop");
});

test.each([
  ["no next page", null],
  ["a next page", "abc"],
])("%s is told by the token as a harvest reads it", async (found, next) => {
  const source = await harvests.source(
    async (asked) => {
      const { body } = await recent(3)(asked);
      return { body: { ...(body as object), next } };
    },
    {
      http: { query: { from: "${window.from}", to: "${window.to}", token: "${page.token}", size: "${page.size}" } },
      pagination: { type: "TOKEN", tokenClass: "REPEATABLE", nextTokenPath: "$.next" },
      response: { totalPath: undefined },
    },
  );
  expect(lineOf(await check(source), "page")?.found).toMatch(new RegExp(`, ${found}\\.$`));
});

test("a record outside of the window is a warning with the bound that it passed, and a rate that nobody declares is no declared one", async () => {
  const today = dayBefore(0);
  const late = itemsOf(1, today);
  const source = await harvests.source(() => ({ body: { total: 1, items: late } }), { rateLimit: undefined });
  const checked = await check(source);
  expect(lineOf(checked, "page")).toMatchObject({
    verdict: "warn",
    found: expect.stringContaining(
      `A record of ${today}T00:00:00.000Z came, which is the end of the window, which is not part of it. 1 record of `,
    ) as string,
    advice: expect.stringContaining("`window.until` is the last unit") as string,
  });
  expect(lineOf(checked, "rate")?.found).toContain("no rate is declared, so there is 1 request a second.");
  const early = itemsOf(1, dayBefore(3));
  const other = await harvests.source(() => ({ body: { total: 1, items: early } }));
  expect(lineOf(await check(other), "page")?.found).toContain("before the start of the window");
});

test("clocks that differ and rates that are lower than declared are warnings", async () => {
  const source = await harvests.source(async (asked): Promise<Said> => {
    const said = await recent(1)(asked);
    const headers = {
      date: new Date(Date.now() - 120_000).toUTCString(),
      "x-rate-limit-limit": "50",
      "x-rate-limit-interval": "1s",
    };
    return { ...said, headers };
  });
  const checked = await check(source);
  expect(lineOf(checked, "clock")).toMatchObject({
    verdict: "warn",
    found: expect.stringMatching(/^The clock of the source is 1(19|20|21) seconds behind this one\.$/) as string,
  });
  expect(lineOf(checked, "rate")).toMatchObject({
    verdict: "warn",
    found: "The source says 50 requests a second; 5000 requests a second are declared.",
    advice: "Lower `rateLimit.refillRatePerSec` to 50.",
  });
});

test.each<[string, Script, string]>([
  ["an answer that is no list", () => ({ body: { nothing: true } }), "fail"],
  ["records without an id", () => ({ body: { total: 1, items: [{ name: "x" }] } }), "fail"],
  ["an empty window", correct([]), "warn"],
  ["an answer with 500", () => ({ status: 500, body: {} }), "fail"],
])("%s is told in the line of the page", async (_, script, verdict) => {
  const source = await harvests.source(script);
  expect(lineOf(await check(source), "page")).toMatchObject({ verdict, advice: expect.any(String) as string });
});

test("a source that does not answer is told of, before whoever asked has given up", async () => {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  const spy = vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms === 20_000 ? 100 : ms));
  const released = signal();
  const source = await harvests.source(async () => {
    await released.promise;
    return { body: {} };
  });
  try {
    const checked = await check(source);
    expect(checked.verdict).toBe("fail");
    expect(lineOf(checked, "connection")?.found).toMatch(/^there was no answer within 20 seconds/);
  } finally {
    spy.mockRestore();
    released.resolve();
  }
});

test("a source or endpoint that does not exist is 404", async () => {
  expect((await harvests.api.post("/api/v1/harvest/sources/nowhere:check")).status).toBe(404);
});
