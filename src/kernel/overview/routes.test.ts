/** The overview over HTTP, with parts that the test makes. */
import { beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { CATALOGUE } from "../../modules.ts";
import type { Activity, Need, OverviewPart, SourceHealth, View, Waiting } from "./part.ts";
import { overviewRoutes } from "./routes.ts";

const database = useDatabase();
const views: View[] = [];
let http: TestHttp;

const need = (title: string, at: string): Need => ({
  about: { kind: "note", id: title },
  state: "failed",
  title,
  reason: "It has failed.",
  count: 1,
  at: new Date(at),
});
const waiting = (subject: string, count: number): Waiting => ({
  cause: "table",
  kind: "note",
  subject,
  about: null,
  count,
  oldestAt: null,
  nextAt: null,
});
const source: SourceHealth = {
  source: "crossref",
  name: "Crossref",
  state: "failing",
  requests: 3,
  failedRequests: 2,
  waitShare: 0.25,
  answerShare: 0.5,
  gate: "crossref",
  heldBack: 1,
  accessRefused: true,
  refusals: 1,
  answerMs: 120,
  usualAnswerMs: 80,
  lagSeconds: 60,
  lastSuccessAt: new Date("2026-01-01T00:00:00Z"),
};
const counts = { bucket: 0, ended: 2, failed: 1, stopped: 0 };
const activity: Activity = {
  ended: [
    {
      kind: "run",
      lanes: [{ id: "1", name: "nightly", underWay: 1, cells: [{ ...counts, failedId: "7" }] }],
      moreLanes: 0,
      buckets: [{ ...counts, p95Ms: 10 }],
      countedFrom: null,
    },
  ],
  lags: [{ about: { kind: "source", id: "crossref" }, name: "crossref/works", seconds: [1, null] }],
};
/** As it arrives. */
const wire = (reply: object): unknown => JSON.parse(JSON.stringify(reply));
const parts: OverviewPart[] = [
  {
    scope: "run:read",
    now: async () => ({
      needs: [need("older", "2026-01-01T00:00:00Z")],
      waiting: [waiting("A", 1)],
      sources: [source],
    }),
    activity: async () => activity,
  },
  {
    scope: "lineage:read",
    async now(_, view) {
      views.push(view);
      return { needs: [need("newer", "2026-01-02T00:00:00Z")], waiting: [waiting("B", 2)] };
    },
  },
];

beforeAll(async () => {
  const { db } = database;
  const clock = { now: () => Date.parse("2026-01-02T00:00:00Z") };
  http = await startHttp({
    db,
    routes: (routes) => overviewRoutes(routes, { db, clock, scopes: CATALOGUE.scopes, parts }),
  });
  return () => http.stop();
});

describe("the overview", () => {
  test("merges the parts: the newest need first, and what most wait for", async () => {
    const { status, body } = await http.send("/overview");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      needs: [{ title: "newer" }, { title: "older", at: "2026-01-01T00:00:00.000Z" }],
      waiting: [{ subject: "B" }, { subject: "A" }],
      sources: [wire(source)],
    });
    // Whole: a field that the schema lacks is not sent.
    expect((body as { sources: unknown }).sources).toEqual([wire(source)]);
  });

  test("shows a caller the parts of its scopes, and tells a part the tenant that it is bound to", async () => {
    const keyed = async (fields: { scopes: string[]; tenantId?: number }) => {
      const { key } = await http.keys.create(database.db, { name: "x", ...fields }, "test");
      return { headers: { authorization: `Bearer ${key}` } };
    };
    const runs = await keyed({ scopes: ["run:read"] });
    expect((await http.send("/overview", runs)).body).toMatchObject({
      needs: [{ title: "older" }],
      hidden: ["lineage:read"],
    });
    const tenant = await keyed({ scopes: ["run:read", "lineage:read"], tenantId: 7 });
    views.length = 0;
    expect((await http.send("/overview", tenant)).body).toMatchObject({
      needs: [{ title: "newer" }],
      hidden: ["run:read"],
    });
    expect(views).toEqual([{ tenantId: "7" }]);
    expect((await http.send("/overview/activity", tenant)).body).toMatchObject({ ended: [], hidden: ["run:read"] });
    expect((await http.send("/overview")).body).toMatchObject({ hidden: [] });
  });

  test("answers the activity of the last day unless it is asked for another range", async () => {
    expect((await http.send("/overview/activity")).body).toMatchObject({
      from: "2026-01-01T00:00:00.000Z",
      to: "2026-01-02T00:00:00.000Z",
      ...(wire(activity) as object),
    });
    expect((await http.send("/overview/activity?hours=1")).body).toMatchObject({ from: "2026-01-01T23:00:00.000Z" });
    expect(await http.send("/overview/activity?from=2026-01-03T00:00:00Z")).toMatchObject({
      status: 400,
      body: { code: "VALIDATION_FAILED" },
    });
  });
});
