/** Reads of runs: lists and searches, nodes, attempts, logs and events. Actions are in actions.test.ts. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { fails, holds, refusal, scripted, useChains } from "../../../test/chains.ts";
import type { Answer, Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal, until } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChains(database);
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);
const post = <Body = Json>(path: string, body?: unknown) => chains.api.post<Body>(`/api/v1${path}`, body);
const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
const aTime = expect.stringMatching(RFC_3339_UTC);

describe("a run", () => {
  test("has all its fields", async () => {
    const name = `run ${randomUUID()}`;
    const nodes = [{ id: "good", type: "noop" }, scripted("bad", fails)];
    const chainId = await chains.define(nodes, { name });
    const runId = await chains.start(chainId, { params: { n: 1 }, opTime: "20250101", priority: 3 });
    const run = await chains.reaches(runId, "FAILED");
    expect(run).toEqual({
      runId,
      chainId,
      chainVersion: 1,
      jobId: null,
      jobName: name,
      status: "FAILED",
      reason: "node `bad` failed: it fails on purpose",
      params: { n: 1 },
      paramsBytes: 8,
      opTime: "20250101",
      priority: 3,
      trigger: "api",
      triggeredBy: "MILLRACE_ADMIN_KEY",
      parentRunId: null,
      parentNodeId: null,
      createdAt: aTime,
      updatedAt: aTime,
      startedAt: aTime,
      endedAt: aTime,
      counts: { SUCCESS: 1, FAILED: 1 },
      previous: null,
      dagJson: expect.any(String),
      dag: { nodes },
    });
    expect(JSON.parse(String(run["dagJson"]))).toEqual({ nodes });
    const { dagJson: _, dag: __, counts: ___, previous: ____, ...summary } = run;
    expect((await get(`/runs?chainId=${chainId}`)).body).toEqual({
      items: [summary],
      page: 1,
      size: 20,
      total: 1,
      next: null,
    });
  });

  test("names the run of its chain before it, with the version of that one", async () => {
    const chainId = await chains.define([{ id: "a", type: "noop" }], { name: "often changed" });
    const first = await chains.start(chainId);
    await chains.start(await chains.define([{ id: "a", type: "noop" }]));
    const change = { name: "often changed", version: 1, dagJson: { nodes: [{ id: "b", type: "noop" }] } };
    expect((await chains.api.put(`/api/v1/chains/${chainId}`, change)).status).toBe(200);
    const second = await chains.start(chainId);
    const third = await chains.start(chainId);
    const previous = async (runId: string) => (await get(`/runs/${runId}?dag=false`)).body["previous"];
    expect(await previous(first)).toBeNull();
    expect(await previous(second)).toEqual({ runId: first, chainVersion: 1 });
    expect(await previous(third)).toEqual({ runId: second, chainVersion: 2 });
  });

  test("that is PENDING because of maxActiveRuns has a reason", async () => {
    const chainId = await chains.define([scripted("work", holds)], { maxActiveRuns: 1 });
    const first = await chains.start(chainId);
    await chains.reaches(first, "RUNNING");
    const second = await chains.start(chainId);
    expect((await get(`/runs/${second}`)).body).toMatchObject({
      status: "PENDING",
      reason: "waits for its turn: 1 of at most 1 runs of this chain are active",
      startedAt: null,
      endedAt: null,
      counts: { PENDING: 1 },
    });
    for (const runId of [second, first]) await post(`/runs/${runId}:stop`);
  });

  test("with large params has them in its own reply, and not in the list", async () => {
    const chainId = await chains.define([{ id: "a", type: "noop" }]);
    const params = { names: Array.from({ length: 5_000 }, (_, index) => `name ${index}`) };
    const runId = await chains.start(chainId, { params });
    expect((await get(`/runs/${runId}`)).body["params"]).toEqual(params);
    const { items } = (await get<{ items: Json[] }>(`/runs?chainId=${chainId}`)).body;
    expect(items).toMatchObject([{ runId, params: null }]);
    expect(items[0]?.["paramsBytes"]).toBeGreaterThan(0);
  });

  test("is found by its id in upper case", async () => {
    const runId = await chains.run([{ id: "a", type: "noop" }]);
    expect((await get(`/runs/${runId.toUpperCase()}`)).body["runId"]).toBe(runId);
  });
});

describe("the nodes of a run", () => {
  test("can be read without artifacts, and only those that changed since then or are in work", async () => {
    const gate = signal();
    const runId = await chains.run([
      scripted("done", () => ({ artifact: { rows: 3 } })),
      scripted("long", async () => ({ artifact: await gate.promise })),
      { id: "last", type: "noop", dependsOn: ["long"] },
    ]);
    await chains.nodeReaches(runId, "done", "SUCCESS");
    await chains.nodeReaches(runId, "long", "RUNNING");
    type Nodes = { nodeId: string; artifact: unknown; updatedAt: string }[];
    const read = async (query: string) => (await get<Nodes>(`/runs/${runId}/nodes?${query}`)).body;
    expect((await read("artifacts=false")).map(({ nodeId, artifact }) => [nodeId, artifact])).toEqual([
      ["done", null],
      ["long", null],
      ["last", null],
    ]);
    const later = new Date(Date.now() + 3_600_000).toISOString();
    expect((await read(`artifacts=false&since=${later}`)).map(({ nodeId }) => nodeId)).toEqual(["long"]);
    expect((await read(`since=${later}`)).map(({ nodeId }) => nodeId)).toEqual(["long"]);
    const [done] = await read("");
    expect(done).toMatchObject({ nodeId: "done", artifact: { rows: 3 } });
    expect((await read(`artifacts=false&since=${done?.updatedAt}`)).map(({ nodeId }) => nodeId)).toContain("done");
    gate.resolve();
    await chains.reaches(runId, "SUCCESS");
  });

  test("need not come with the DAG of their run", async () => {
    const runId = await chains.run([{ id: "a", type: "noop" }]);
    const { body } = await get(`/runs/${runId}?dag=false`);
    expect(body).toMatchObject({ runId, counts: expect.anything() });
    expect(Object.keys(body)).not.toContain("dag");
  });
});

describe("the list of runs", () => {
  const name = `list_of 100% ${randomUUID()}`;
  const runIds: string[] = [];
  let chainId = "";
  let childRunId = "";

  /** The indexes of the runs found, in order. */
  async function found(query: Record<string, string>, filter = `chainId=${chainId}`) {
    const { status, body } = await get<{ items: { runId: string }[]; total: number }>(
      `/runs?${filter}&${new URLSearchParams(query).toString()}`,
    );
    expect(status).toBe(200);
    expect(body.total).toBeGreaterThanOrEqual(body.items.length);
    return body.items.map(({ runId }) => runIds.indexOf(runId));
  }

  beforeAll(async () => {
    const inner = `inner ${name}`;
    await chains.define([{ id: "a", type: "noop" }], { name: inner });
    const work = scripted("work", ({ params }) => {
      if (params["fail"]) throw new Error("on purpose");
      return {};
    });
    const call = { id: "call", type: "chain", cfg: { name: inner }, dependsOn: ["work"] };
    chainId = await chains.define([work, call], { name });
    for (const [n, fail] of [false, true, false].entries()) {
      const runId = await chains.start(chainId, { params: { fail }, opTime: `2025010${n}` });
      runIds.push(runId);
      await chains.reaches(runId, fail ? "FAILED" : "SUCCESS");
      const createdAt = `2001-01-01T0${n}:00:00Z`;
      await database.query("update chains.job_run set created_at = $2 where run_id = $1", [runId, createdAt]);
    }
    childRunId = String((await chains.node(runIds[0] ?? "", "call"))["childRunId"]);
  });

  test("goes on after the last run of a page, whatever has started meanwhile", async () => {
    const first = await get<{ next: string; total: number }>(`/runs?chainId=${chainId}&size=2`);
    expect(first.body).toMatchObject({ next: runIds[1], total: 3 });
    expect(await found({ size: "2", after: first.body.next })).toEqual([0]);
    expect((await get(`/runs?chainId=${chainId}&size=2&after=${runIds[1]}`)).body).toMatchObject({
      next: null,
      total: 3,
    });
    expect(await found({ after: "no-id" })).toEqual([]);
  });

  test("has neither gaps nor repetitions between runs of one moment", async () => {
    const many = await chains.define([{ id: "a", type: "noop" }]);
    const made = [
      await chains.start(many),
      await chains.start(many),
      await chains.start(many),
      await chains.start(many),
    ];
    await database.query("update chains.job_run set created_at = '2002-01-01' where chain_id = $1", [many]);
    const seen: string[] = [];
    for (let after = ""; ; ) {
      const { body } = await get<{ items: { runId: string }[]; next: string | null }>(
        `/runs?chainId=${many}&size=1${after}`,
      );
      seen.push(...body.items.map(({ runId }) => runId));
      if (body.next === null) break;
      after = `&after=${body.next}`;
    }
    expect(seen.toSorted()).toEqual(made.toSorted());
  });

  test("has the runs that are named, in any number", async () => {
    const unknown = Array.from({ length: 198 }, () => randomUUID());
    const ids = [...unknown, runIds[2], runIds[0]].join(",");
    expect(await found({ ids }, "")).toEqual([2, 0]);
    expect((await get(`/runs?ids=${ids}`)).body).toMatchObject({ size: 200, total: 2, next: null });
    expect(await found({ ids, size: "1" }, "")).toEqual([2]);
    const { status, body } = await get(`/runs?ids=${runIds[2]},no-id,x`);
    expect([status, body]).toMatchObject([400, { code: "VALIDATION_FAILED", error: expect.stringContaining("no-id") }]);
    expect(await get(`/runs?ids=${ids},${randomUUID()}`)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("200") },
    });
  });

  test("tells by `updatedAt` which state of a run is the later one, however late its transaction began", async () => {
    const gate = signal();
    const runId = await chains.start(
      await chains.define([scripted("work", async () => ({ artifact: await gate.promise }))]),
    );
    await chains.nodeReaches(runId, "work", "RUNNING");
    await database.query("update chains.job_run set updated_at = '2100-01-01' where run_id = $1", [runId]);
    gate.resolve();
    await chains.reaches(runId, "SUCCESS");
    expect((await get(`/runs/${runId}`)).body["updatedAt"]).toBe("2100-01-01T00:00:00.001Z");
  });

  test("is filtered by what started a run, and who", async () => {
    const by = String((await get(`/runs/${runIds[0]}`)).body["triggeredBy"]);
    expect(await found({ trigger: "api", triggeredBy: by })).toEqual([2, 1, 0]);
    expect(await found({ trigger: "schedule" })).toEqual([]);
    expect(await found({ triggeredBy: "nobody" })).toEqual([]);
    expect((await get("/runs?trigger=magic")).status).toBe(400);
  });

  test("is newest first, page by page", async () => {
    expect(await found({})).toEqual([2, 1, 0]);
    expect(await found({ size: "2" })).toEqual([2, 1]);
    expect(await found({ size: "2", page: "2" })).toEqual([0]);
    expect((await get(`/runs?chainId=${chainId}&size=2&page=2`)).body).toMatchObject({ page: 2, size: 2, total: 3 });
  });

  test.each([
    ["status", { status: "SUCCESS" }, [2, 0]],
    ["a status that none has", { status: "STOPPING" }, []],
    ["opTime", { opTime: "20250101" }, [1]],
    ["from, which is included", { from: "2001-01-01T01:00:00Z" }, [2, 1]],
    ["to, which is not", { to: "2001-01-01T01:00:00Z" }, [0]],
    ["a time with an offset", { from: "2001-01-01T03:30:00+02:00" }, [2]],
    ["part of the chain's name, in any case", { q: name.slice(5).toUpperCase() }, [2, 1, 0]],
    ["a character with a meaning in SQL", { q: "listxof" }, []],
    ["everything at once", { status: "SUCCESS", opTime: "20250102", from: "2001-01-01T00:00:00Z", q: "100%" }, [2]],
  ] as [string, Record<string, string>, number[]][])("is filtered by %s", async (_, query, expected) => {
    expect(await found(query)).toEqual(expected);
    const { body } = await get(`/runs?chainId=${chainId}&${new URLSearchParams(query).toString()}`);
    expect(body["total"]).toBe(expected.length);
  });

  test("accepts the start of a run's id, and an unencoded `+`", async () => {
    const [first = ""] = runIds;
    expect(await found({ q: first.toUpperCase() }, "size=5")).toEqual([0]);
    for (const length of [8, 13, 18, 36]) expect(await found({ id: first.slice(0, length) })).toContain(0);
    expect(await found({ id: first.toUpperCase() })).toEqual([0]);
    expect(await found({ id: `${first.slice(0, -1)}${first.endsWith("0") ? 1 : 0}` })).toEqual([]);
    expect(await found({}, `chainId=${chainId}&from=2001-01-01T03:30:00+02:00`)).toEqual([2]);
  });

  test("has the child runs of a run", async () => {
    const { body } = await get<{ items: Json[] }>(`/runs?parentRunId=${runIds[0]}`);
    expect(body.items).toMatchObject([
      { runId: childRunId, parentRunId: runIds[0], parentNodeId: "call", trigger: "chain", status: "SUCCESS" },
    ]);
  });

  test.each(["chainId", "parentRunId"])("is empty for an unknown %s", async (field) => {
    for (const id of ["x", "%25", "00000000-0000-4000-8000-000000000000"]) {
      expect((await get(`/runs?${field}=${id}`)).body).toEqual({ items: [], page: 1, size: 20, total: 0, next: null });
    }
  });

  test.each([
    "status=DONE",
    "status=success",
    "from=yesterday",
    "opTime=%20",
    "page=0",
    `q=${"x".repeat(129)}`,
    "id=0123456",
    "id=no-id-of-a-run",
  ])("refuses %s", async (query) => {
    expect(refusal(await get(`/runs?${query}`))).toEqual([400, "VALIDATION_FAILED"]);
  });
});

describe("the nodes of a run", () => {
  test("come in the order of the definition, with all their fields", async () => {
    const runId = await chains.run([
      { id: "z", type: "noop", dependsOn: ["later"] },
      { id: "later", type: "noop", dependsOn: ["work", "a"] },
      scripted("work", holds),
      scripted("a", () => ({ artifact: { rows: 3 } })),
      scripted("again", fails, { retry: { maxAttempts: 5, backoffMs: 3_600_000 } }),
    ]);
    await chains.nodeReaches(runId, "work", "RUNNING");
    await chains.nodeReaches(runId, "again", "RETRYING");
    await chains.nodeReaches(runId, "a", "SUCCESS");
    const nothing = {
      runWhen: "all_success",
      lastError: null,
      artifactJson: null,
      artifact: null,
      artifactBytes: null,
      startedAt: null,
      endedAt: null,
      dueAt: null,
      waitingFor: null,
      waits: null,
      progress: null,
      progressNote: null,
      worker: null,
      childRunId: null,
      updatedAt: aTime,
    };
    const worker = expect.stringContaining(`:${process.pid}`);
    const waits = { cause: "inputs", parents: 1, tables: [], pool: null, unservedRole: null };
    const pending = { ...nothing, waits, type: "noop", status: "PENDING", attempt: 0, maxAttempts: 1 };
    const scriptedNode = { ...nothing, type: "scripted", dependsOn: [], attempt: 1, maxAttempts: 1, worker };
    expect(await chains.nodes(runId)).toEqual([
      { ...pending, nodeId: "z", dependsOn: ["later"], waitingFor: "1 parent to end" },
      { ...pending, nodeId: "later", dependsOn: ["work", "a"], waitingFor: "1 parent to end" },
      { ...scriptedNode, nodeId: "work", status: "RUNNING", startedAt: aTime },
      {
        ...scriptedNode,
        nodeId: "a",
        status: "SUCCESS",
        startedAt: aTime,
        endedAt: aTime,
        artifactJson: '{"rows":3}',
        artifact: { rows: 3 },
        artifactBytes: 11,
      },
      {
        ...scriptedNode,
        nodeId: "again",
        status: "RETRYING",
        attempt: 2,
        maxAttempts: 5,
        lastError: "it fails on purpose",
        startedAt: null,
        dueAt: aTime,
        waitingFor: expect.stringMatching(/^its next attempt, due at \d{4}-/),
        waits: { ...waits, cause: "retry", parents: 0 },
      },
    ]);
    await post(`/runs/${runId}:stop`);
  });
});

describe("one node of a run", () => {
  test("is the same as in the list, plus an artifact that is too large for the list", async () => {
    const rows = Array.from({ length: 10_000 }, (_, index) => `row ${index}`);
    const runId = await chains.run([
      scripted("small", () => ({ artifact: { rows: 1 } })),
      scripted("large", () => ({ artifact: { rows } })),
    ]);
    await chains.reaches(runId, "SUCCESS");
    const [small, large] = await chains.nodes(runId);
    expect((await get(`/runs/${runId}/nodes/small`)).body).toEqual(small);
    expect(large).toMatchObject({ artifact: null, artifactJson: null });
    expect(large?.["artifactBytes"]).toBeGreaterThan(0);
    const { body } = await get(`/runs/${runId}/nodes/large`);
    const artifactJson = JSON.stringify({ rows });
    expect(body).toMatchObject({ nodeId: "large", artifact: { rows }, artifactJson });
  });
});

describe("the attempts of a node", () => {
  test("are all kept, with times and errors", async () => {
    const runId = await chains.run([
      scripted(
        "flaky",
        ({ attempt }) => {
          if (attempt < 3) throw new Error(`try ${attempt}`);
          return {};
        },
        { retry: { maxAttempts: 3, backoffMs: 1 } },
      ),
      { id: "never", type: "noop", dependsOn: ["flaky"], if: "false" },
    ]);
    await chains.reaches(runId, "SUCCESS");
    const attempt = { worker: expect.any(String), startedAt: aTime, endedAt: aTime };
    expect((await get(`/runs/${runId}/nodes/flaky/attempts`)).body).toEqual([
      { ...attempt, attempt: 1, status: "FAILED", error: "try 1" },
      { ...attempt, attempt: 2, status: "FAILED", error: "try 2" },
      { ...attempt, attempt: 3, status: "SUCCESS", error: null },
    ]);
  });

  test("are empty before the first", async () => {
    const runId = await chains.run([scripted("work", holds), { id: "later", type: "noop", dependsOn: ["work"] }]);
    expect((await get(`/runs/${runId}/nodes/later/attempts`)).body).toEqual([]);
    await post(`/runs/${runId}:stop`);
  });
});

describe("the log of a node", () => {
  interface Page {
    items: { id: string; at: string; attempt: number; level: string; text: string }[];
    next: string;
  }
  let runId = "";
  const page = async (query = "", nodeId = "verbose") => {
    const { status, body } = await get<Page>(`/runs/${runId}/nodes/${nodeId}/logs?${query}`);
    expect(status).toBe(200);
    return { ...body, texts: body.items.map(({ text }) => text) };
  };

  beforeAll(async () => {
    const verbose = scripted(
      "verbose",
      ({ attempt, log }) => {
        for (const n of [1, 2, 3]) log(`${attempt}.${n}`, n === 3 ? "warn" : "info");
        if (attempt === 1) throw new Error("once more");
        return {};
      },
      { retry: { maxAttempts: 2, backoffMs: 1 } },
    );
    runId = await chains.run([
      verbose,
      scripted("other", ({ log }) => (log("other"), {})),
      { id: "silent", type: "noop" },
    ]);
    await chains.reaches(runId, "SUCCESS");
    await until(async () => (await page()).items.length === 6, "the lines to be written");
  });

  test("has its lines in order, with level and attempt", async () => {
    const { items, texts } = await page();
    expect(texts).toEqual(["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]);
    expect(items[2]).toEqual({ id: expect.any(String), at: aTime, attempt: 1, level: "warn", text: "1.3" });
    expect((await page("", "other")).texts).toEqual(["other"]);
  });

  test("comes page by page, and `next` stays valid after the last line", async () => {
    const first = await page("limit=4");
    expect(first.texts).toEqual(["1.1", "1.2", "1.3", "2.1"]);
    const second = await page(`limit=4&after=${first.next}`);
    expect(second.texts).toEqual(["2.2", "2.3"]);
    expect(await page(`after=${second.next}`)).toMatchObject({ items: [], next: second.next });
    expect(await page("", "silent")).toMatchObject({ items: [], next: "0" });
  });

  test("can be read for one attempt", async () => {
    expect((await page("attempt=2")).texts).toEqual(["2.1", "2.2", "2.3"]);
    expect((await page("attempt=3")).texts).toEqual([]);
  });

  test.each(["after=-1", "after=x", "limit=0", "limit=5001", "attempt=0", `after=${"9".repeat(19)}`])(
    "refuses %s",
    async (query) => {
      expect(refusal(await get(`/runs/${runId}/nodes/verbose/logs?${query}`))).toEqual([400, "VALIDATION_FAILED"]);
    },
  );
});

describe("the events of a run", () => {
  interface Event {
    at: string;
    kind: string;
    nodeId: string | null;
    attempt: number | null;
    actor: string | null;
    detail: Json;
  }

  test("show in order what happened and who did it", async () => {
    const { body: made } = await chains.api.post("/api/v1/keys", { name: "ada", scopes: ["run:control"] });
    const asAda = (path: string, body: Json = {}) =>
      chains.api.send(`/api/v1${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${String(made["key"])}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const runId = await chains.run([scripted("bad", fails), scripted("long", holds, { dependsOn: [] })]);
    await chains.nodeReaches(runId, "bad", "FAILED");
    await chains.nodeReaches(runId, "long", "RUNNING");
    await asAda(`/runs/${runId}:stop`, { reason: "lunch" });
    await chains.reaches(runId, "STOPPED");
    await asAda(`/runs/${runId}:resume`);
    await chains.nodeReaches(runId, "long", "RUNNING");
    await post(`/runs/${runId}/nodes/bad:retry`, { reason: "fixed" });
    await chains.nodeReaches(runId, "bad", "FAILED");
    await asAda(`/runs/${runId}/nodes/bad:complete`, { reason: "by hand" });
    await asAda(`/runs/${runId}/nodes/long:complete`);
    await chains.reaches(runId, "SUCCESS");

    const { body } = await get<{ items: Event[]; next: null }>(`/runs/${runId}/events`);
    expect(body.next).toBeNull();
    const times = body.items.map(({ at }) => Date.parse(at));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const eventsOf = (nodeId: string | null) =>
      body.items
        .filter((event) => event.nodeId === nodeId)
        .map(({ kind, attempt, actor, detail }) => [kind, attempt ?? actor, detail["status"] ?? detail["reason"]]);
    expect(eventsOf(null)).toEqual([
      ["run created", "MILLRACE_ADMIN_KEY", undefined],
      ["run started", null, undefined],
      ["stop asked for", "ada", "lunch"],
      ["run resumed", "ada", undefined],
      ["run ended", null, "SUCCESS"],
    ]);
    expect(eventsOf("bad")).toEqual([
      ["node started", 1, undefined],
      ["node ended", 1, "FAILED"],
      ["node retried", "MILLRACE_ADMIN_KEY", "fixed"],
      ["node started", 2, undefined],
      ["node ended", 2, "FAILED"],
      ["node completed", "ada", "by hand"],
    ]);
    expect(eventsOf("long")).toEqual([
      ["node started", 1, undefined],
      ["node ended", 1, "STOPPED"],
      ["node started", 2, undefined],
      ["node ended", 2, "STOPPED"],
      ["node completed", "ada", undefined],
    ]);
  });

  test("come page by page", async () => {
    const runId = await chains.run([{ id: "a", type: "noop" }]);
    await chains.reaches(runId, "SUCCESS");
    const all = (await get<{ items: Event[] }>(`/runs/${runId}/events`)).body.items;
    expect(all.map(({ kind }) => kind)).toEqual([
      "run created",
      "run started",
      "node started",
      "node ended",
      "run ended",
    ]);
    const paged: Event[] = [];
    let next: string | null = "0";
    while (next !== null) {
      const answer: Answer<{ items: Event[]; next: string | null }> = await get(
        `/runs/${runId}/events?limit=2&after=${next}`,
      );
      paged.push(...answer.body.items);
      ({ next } = answer.body);
    }
    expect(paged).toEqual(all);
    expect(refusal(await get(`/runs/${runId}/events?after=x`))).toEqual([400, "VALIDATION_FAILED"]);
  });
});

test("the list has the reason of a PENDING run, too", async () => {
  const chainId = await chains.define([scripted("work", holds)], { maxActiveRuns: 1 });
  const first = await chains.start(chainId);
  await chains.reaches(first, "RUNNING");
  const second = await chains.start(chainId);
  expect((await get(`/runs?chainId=${chainId}`)).body["items"]).toMatchObject([
    { runId: second, reason: "waits for its turn: 1 of at most 1 runs of this chain are active" },
    { runId: first, reason: null },
  ]);
  for (const runId of [second, first]) await post(`/runs/${runId}:stop`);
});
