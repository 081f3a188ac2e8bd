/** The API of definitions: what is stored, what is refused and why. */
import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { holds, refusal, scripted, useChains } from "../../../test/chains.ts";
import type { Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { signal } from "../../../test/until.ts";

const database = useDatabase();
const chains = useChains(database);
const get = <Body = Json>(path: string) => chains.api.get<Body>(`/api/v1${path}`);
const post = <Body = Json>(path: string, body?: unknown) => chains.api.post<Body>(`/api/v1${path}`, body);
const put = (path: string, body: unknown) => chains.api.put(`/api/v1${path}`, body);

const NODES = [
  { id: "a", type: "noop" },
  { id: "b", type: "noop", dependsOn: ["a"] },
];
const DAG = { nodes: NODES };
const UNKNOWN_ID = "00000000-0000-4000-8000-000000000000";
/** The name of the test's own key. */
const ADMIN = "MILLRACE_ADMIN_KEY";
const newName = () => `chain ${randomUUID()}`;
const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** The newest entry of the audit log for a target. */
async function audited(target: string): Promise<{ actor: string; action: string; details: unknown } | undefined> {
  const rows = await database.query<{ actor: string; action: string; details: unknown }>(
    "select actor, action, details from kernel.audit_log where target = $1 order by id desc limit 1",
    [target],
  );
  return rows[0];
}

describe("creating a chain", () => {
  test.each([
    ["text", JSON.stringify(DAG)],
    ["an object", DAG],
  ])("takes the DAG as %s, and answers it as both", async (_, dagJson) => {
    const name = newName();
    const { status, body } = await post("/chains", { name, dagJson });
    expect(status).toBe(200);
    expect(body).toEqual({
      chainId: expect.stringMatching(/^[\da-f-]{36}$/),
      name,
      description: null,
      enabled: true,
      version: 1,
      maxActiveRuns: null,
      runTimeoutMs: null,
      dagJson: expect.any(String),
      dag: DAG,
      createdAt: expect.stringMatching(RFC_3339_UTC),
      updatedAt: expect.stringMatching(RFC_3339_UTC),
    });
    expect(JSON.parse(String(body["dagJson"]))).toEqual(DAG);
    expect(await get(`/chains/${String(body["chainId"])}`)).toMatchObject({ status: 200, body });
    expect(await audited(String(body["chainId"]))).toMatchObject({ actor: ADMIN, action: "chain.create" });
  });

  test.each([
    [undefined, true],
    [null, true],
    [false, false],
  ])("with enabled %s makes it %s", async (enabled, expected) => {
    const { body } = await post("/chains", { name: newName(), dagJson: DAG, enabled });
    expect(body["enabled"]).toBe(expected);
  });

  test("keeps its limits and its description", async () => {
    const fields = { description: "Jede Nacht 每晚 🌙", maxActiveRuns: 2, runTimeoutMs: 60_000 };
    const chainId = await chains.define(NODES, fields);
    expect((await get(`/chains/${chainId}`)).body).toMatchObject(fields);
  });

  test("refuses a name that is taken, also for concurrent requests", async () => {
    const name = newName();
    const answers = await Promise.all([1, 2, 3].map(() => post("/chains", { name, dagJson: DAG })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(refusal(await post("/chains", { name, dagJson: DAG }))).toEqual([400, "CHAIN_NAME_TAKEN"]);
  });

  test.each([
    ["blank", "  "],
    ["empty", ""],
    ["with a line break", "a\nb"],
    ["too long", "x".repeat(129)],
    ["not text", 7],
  ])("refuses a name that is %s", async (_, name) => {
    expect(refusal(await post("/chains", { name, dagJson: DAG }))).toEqual([400, "VALIDATION_FAILED"]);
  });

  test("reports all problems of the DAG at once, with path and node", async () => {
    const name = newName();
    const wrong: [node: unknown, path: string, message: RegExp][] = [
      [{ id: "x", type: "noop", dependsOn: ["z"] }, "nodes[0].dependsOn", /x -> y -> z -> x/],
      [{ id: "twin", type: "slep" }, "nodes[1].type", /`slep`.*`sleep`/],
      [{ id: "twin", type: "noop" }, "nodes[2].id", /`twin`.*`nodes\[1\]`/],
      [{ id: "orphan", type: "noop", dependsOn: ["nobody"] }, "nodes[3].dependsOn[0]", /`nobody`/],
      [{ id: "long", type: "sleep", cfg: { ms: "long" } }, "nodes[4].cfg.ms", /./],
      [{ id: "iffy", type: "noop", if: "params.x >" }, "nodes[5].if", /./],
      [{ id: "template", type: "sleep", cfg: { ms: "${params.}" } }, "nodes[6].cfg.ms", /./],
      [{ id: "swimmer", type: "noop", pool: "no-such-pool" }, "nodes[7].pool", /`no-such-pool`/],
      [{ id: "lonely", type: "noop", runWhen: "one_failed" }, "nodes[8].runWhen", /./],
      [{ id: "wrong id!", type: "noop" }, "nodes[9].id", /./],
      [{ id: "greedy", type: "noop", retry: { maxAttempts: 0 } }, "nodes[10].retry.maxAttempts", /./],
      [{ id: "odd", type: "noop", depends: ["x"] }, "nodes[11].depends", /`dependsOn`/],
      ["no node", "nodes[12]", /./],
    ];
    const rest = [
      { id: "y", type: "noop", dependsOn: ["x"] },
      { id: "z", type: "noop", dependsOn: ["y"] },
    ];
    const { status, body } = await post<{
      error: string;
      code: string;
      details: { problems: { path: string; nodeId?: string; message: string }[] };
    }>("/chains", { name, dagJson: { nodes: [...wrong.map(([node]) => node), ...rest] } });
    expect([status, body.code]).toEqual([400, "DAG_INVALID"]);
    const problems = new Map(body.details.problems.map((problem) => [problem.path, problem]));
    for (const [node, path, message] of wrong) {
      const problem = problems.get(path);
      expect(problem?.message, path).toMatch(message);
      expect(problem?.nodeId, path).toBe((node as { id?: string }).id);
    }
    expect(body.details.problems).toHaveLength(wrong.length);
    expect(body.error).toContain(`and ${wrong.length - 1} more`);
    expect((await get(`/chains?name=${encodeURIComponent(name)}`)).body).toMatchObject({ total: 0 });
  });

  test.each([
    ["text that is not JSON", "{nodes", "not valid JSON"],
    ["JSON that is not an object", "[]", "must be an object"],
    ["an object without nodes", {}, "dag must have nodes"],
    ["nodes that are not a list", { nodes: {} }, "dag must have nodes"],
    ["a NUL inside the text", '{"nodes":[{"id":"a","type":"no\\u0000op"}]}', "NUL"],
    ["endless nesting inside the text", `{"nodes":${"[".repeat(100)}${"]".repeat(100)}}`, "levels deep"],
    [
      "more nodes than are allowed",
      JSON.stringify({ nodes: Array.from({ length: 10_001 }, (_, index) => ({ id: `n${index}`, type: "noop" })) }),
      "10001 nodes, more than the 10000",
    ],
  ])("refuses %s", async (_, dagJson, sentence) => {
    const answer = await post("/chains", { name: newName(), dagJson });
    expect(refusal(answer)).toEqual([400, "DAG_INVALID"]);
    expect(answer.body["error"]).toContain(sentence);
    expect(answer.body["details"]).toMatchObject({ problems: [{ message: expect.stringContaining(sentence) }] });
  });

  test("takes a DAG of up to 4 MB, as text and as an object, although other bodies have a lower limit", async () => {
    const dagOf = (length: number) => ({
      nodes: [{ id: "a", type: "scripted", cfg: { script: "none", input: '"'.repeat(length / 2) } }],
    });
    const [allowed, tooLarge] = [dagOf(4_194_000), dagOf(4_195_000)];
    for (const dagJson of [allowed, JSON.stringify(allowed)]) {
      expect(await post("/chains?dryRun=true", { name: "large", dagJson })).toMatchObject({ status: 200 });
    }
    for (const dagJson of [tooLarge, JSON.stringify(tooLarge)]) {
      const answer = await post("/chains?dryRun=true", { name: "large", dagJson });
      expect(refusal(answer)).toEqual([400, "DAG_INVALID"]);
    }
  });

  test("with dryRun only says whether the DAG is valid", async () => {
    const name = newName();
    expect(await post("/chains?dryRun=true", { name, dagJson: DAG })).toMatchObject({
      status: 200,
      body: { valid: true, nodes: 2 },
    });
    expect((await get(`/chains?name=${encodeURIComponent(name)}`)).body).toMatchObject({ total: 0 });
    const wrong = await post("/chains?dryRun=true", { name, dagJson: { nodes: [{ id: "a", type: "nope" }] } });
    expect(refusal(wrong)).toEqual([400, "DAG_INVALID"]);
  });
});

describe("updating a chain", () => {
  test("makes the next version; absent limits stay, and null removes them", async () => {
    const chainId = await chains.define(NODES, { description: "old", maxActiveRuns: 3, runTimeoutMs: 5_000 });
    const name = newName();
    const dag = { nodes: [{ id: "only", type: "noop" }] };
    const { status, body } = await put(`/chains/${chainId}`, { name, dagJson: JSON.stringify(dag), version: 1 });
    expect(status).toBe(200);
    expect(body).toMatchObject({ chainId, name, version: 2, dag, enabled: true });
    expect(body).toMatchObject({ description: null, maxActiveRuns: 3, runTimeoutMs: 5_000 });
    expect((await get(`/chains/${chainId}`)).body).toEqual(body);
    expect(await audited(chainId)).toMatchObject({ action: "chain.update", details: { name, version: 2 } });
    const changes = [
      { field: "name", from: expect.any(String), to: name },
      { field: "description", from: "old", to: null },
      { field: "nodes.only", to: { type: "noop" } },
      ...NODES.map(({ id, ...node }) => ({ field: `nodes.${id}`, from: node })),
    ];
    expect(await audited(chainId)).toMatchObject({ details: { changes } });
    const limits = { maxActiveRuns: 4, runTimeoutMs: null };
    const { body: lifted } = await put(`/chains/${chainId}`, { name, dagJson: dag, version: 2, ...limits });
    expect(lifted).toMatchObject({ version: 3, ...limits });
  });

  test("keeps a disabled chain disabled", async () => {
    const name = newName();
    const chainId = await chains.define(NODES, { name, enabled: false });
    expect((await put(`/chains/${chainId}`, { name, dagJson: DAG, version: 1 })).body["enabled"]).toBe(false);
  });

  test("from another version than the current one is refused with the current version", async () => {
    const name = newName();
    const chainId = await chains.define(NODES, { name });
    for (const version of [2, Number.MAX_SAFE_INTEGER]) {
      const answer = await put(`/chains/${chainId}`, { name, dagJson: DAG, version });
      expect(refusal(answer)).toEqual([409, "VERSION_CONFLICT"]);
      expect(answer.body["details"]).toEqual({ chainId, version: 1, yours: version });
    }
  });

  test("succeeds for one of many that start from the same version", async () => {
    const name = newName();
    const chainId = await chains.define(NODES, { name });
    const answers = await Promise.all(
      [1, 2, 3, 4].map((n) => put(`/chains/${chainId}`, { name, dagJson: DAG, version: 1, description: `by ${n}` })),
    );
    const [winner, ...others] = answers.toSorted((a, b) => a.status - b.status);
    expect(others.map(({ status }) => status)).toEqual([409, 409, 409]);
    expect(await get(`/chains/${chainId}`)).toMatchObject({ status: 200, body: winner?.body });
  });

  test("to a name that is taken, or with a DAG that is wrong, is refused and changes nothing", async () => {
    const [mine, others] = [newName(), newName()];
    const chainId = await chains.define(NODES, { name: mine });
    await chains.define(NODES, { name: others });
    const { body: before } = await get(`/chains/${chainId}`);
    expect(refusal(await put(`/chains/${chainId}`, { name: others, dagJson: DAG, version: 1 }))).toEqual([
      400,
      "CHAIN_NAME_TAKEN",
    ]);
    expect(refusal(await put(`/chains/${chainId}`, { name: mine, dagJson: { nodes: [] }, version: 1 }))).toEqual([
      400,
      "DAG_INVALID",
    ]);
    expect(refusal(await put(`/chains/${chainId}`, { name: mine, dagJson: DAG, version: 0 }))[0]).toBe(400);
    expect((await get(`/chains/${chainId}`)).body).toEqual(before);
    expect((await get(`/chains/${chainId}/versions`)).body["items"]).toHaveLength(1);
  });

  test("that does not exist is refused", async () => {
    const answer = await put(`/chains/${UNKNOWN_ID}`, { name: newName(), dagJson: DAG, version: 1 });
    expect(refusal(answer)).toEqual([400, "CHAIN_NOT_FOUND"]);
  });
});

describe("enabling and disabling", () => {
  test("can be repeated, and makes no version", async () => {
    const chainId = await chains.define(NODES);
    const disabled = await post(`/chains/${chainId}:disable`);
    expect(disabled).toMatchObject({ status: 200, body: { chainId, enabled: false, version: 1 } });
    expect(await audited(chainId)).toMatchObject({ action: "chain.disable" });
    expect((await post(`/chains/${chainId}:disable`)).body).toEqual(disabled.body);
    expect(await post(`/chains/${chainId}:enable`, {})).toMatchObject({ status: 200, body: { enabled: true } });
    expect(await post(`/chains/${chainId}:enable`, null)).toMatchObject({ status: 200, body: { enabled: true } });
    await chains.reaches(await chains.start(chainId), "SUCCESS");
  });

  test("does not affect runs that have started", async () => {
    const gate = signal();
    const chainId = await chains.define([scripted("work", async () => ({ artifact: await gate.promise }))]);
    const runId = await chains.start(chainId);
    await chains.reaches(runId, "RUNNING");
    await post(`/chains/${chainId}:disable`);
    gate.resolve();
    await chains.reaches(runId, "SUCCESS");
  });
});

describe("the list of chains", () => {
  const word = randomUUID().slice(0, 8);
  const names = ["alpha 100%", "beta_one", "betaxone", "gamma"].map((name) => `${name} ${word}`);
  const [alpha = "", beta = "", betax = "", gamma = ""] = names;

  beforeAll(async () => {
    for (const name of names.toReversed()) {
      const description = name === gamma ? `Tells of ALPHA too` : null;
      await chains.define(NODES, { name, description, enabled: name !== beta });
    }
  });

  async function list(query: Record<string, string>) {
    const { status, body } = await get<{ items: Json[]; page: number; size: number; total: number }>(
      `/chains?${new URLSearchParams(query).toString()}`,
    );
    expect(status).toBe(200);
    return { ...body, names: body.items.map((item) => item["name"]) };
  }

  test("is in the order of names, page by page", async () => {
    expect(await list({ keyword: word })).toMatchObject({ names, page: 1, size: 20, total: 4 });
    const paged = { keyword: word, size: "2" };
    expect(await list({ ...paged, page: "1" })).toMatchObject({ names: [alpha, beta], page: 1, size: 2, total: 4 });
    expect(await list({ ...paged, page: "2" })).toMatchObject({ names: [betax, gamma], page: 2, size: 2, total: 4 });
    expect(await list({ ...paged, page: "3" })).toMatchObject({ names: [], total: 4 });
  });

  test.each([
    ["part of the name, in any case", { keyword: `BETA_ONE ${word}` }, [beta]],
    ["characters with a meaning in SQL", { keyword: `100% ${word}` }, [alpha]],
    ["part of the description", { keyword: "of alpha too" }, [gamma]],
    ["enabled", { keyword: word, enabled: "true" }, [alpha, betax, gamma]],
    ["disabled", { keyword: word, enabled: "false" }, [beta]],
    ["enabled left empty", { keyword: word, enabled: "" }, names],
    ["the exact name", { name: alpha }, [alpha]],
    ["a name of which this is only a prefix", { name: alpha.slice(0, -1) }, []],
    ["all at once", { keyword: "beta", enabled: "true", name: betax }, [betax]],
  ] as [string, Record<string, string>, string[]][])("is filtered by %s", async (_, query, expected) => {
    const { names: found, total } = await list(query);
    expect([found, total]).toEqual([expected, expected.length]);
  });

  test("shows the number of nodes and the last run, without the DAG", async () => {
    const name = newName();
    const chainId = await chains.define(NODES, { name, maxActiveRuns: 9, runTimeoutMs: 1_000 });
    expect((await list({ name })).items).toEqual([
      {
        chainId,
        name,
        description: null,
        enabled: true,
        version: 1,
        nodeCount: 2,
        maxActiveRuns: 9,
        runTimeoutMs: 1_000,
        createdAt: expect.stringMatching(RFC_3339_UTC),
        updatedAt: expect.stringMatching(RFC_3339_UTC),
        lastRun: null,
      },
    ]);
    await chains.reaches(await chains.start(chainId), "SUCCESS");
    const runId = await chains.start(chainId);
    await chains.reaches(runId, "SUCCESS");
    expect((await list({ name })).items[0]?.["lastRun"]).toMatchObject({
      runId,
      status: "SUCCESS",
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
  });

  test.each(["page=0", "size=0", "size=1001", "enabled=perhaps", "nodes=3"])("refuses %s", async (query) => {
    expect(refusal(await get(`/chains?${query}`))).toEqual([400, "VALIDATION_FAILED"]);
  });
});

describe("the versions of a chain", () => {
  test("are all kept, newest first, page by page, with who made them", async () => {
    const { body: made } = await chains.api.post("/api/v1/keys", { name: "ada", scopes: ["chain:write"] });
    const name = newName();
    const chainId = await chains.define(NODES, { name });
    const dag = { nodes: [{ id: "only", type: "noop" }] };
    await chains.api.send(`/api/v1/chains/${chainId}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${String(made["key"])}`, "content-type": "application/json" },
      body: JSON.stringify({ name: `${name} new`, description: "now shorter", dagJson: dag, version: 1 }),
    });
    await put(`/chains/${chainId}`, { name, dagJson: DAG, version: 2 });

    const { body: newest } = await get<{ items: Json[]; next: number }>(`/chains/${chainId}/versions?limit=2`);
    expect(newest).toMatchObject({
      items: [
        { version: 3, name, createdBy: ADMIN },
        { version: 2, name: `${name} new`, description: "now shorter", createdBy: "ada" },
      ],
      next: 2,
    });
    const { body: rest } = await get<{ items: Json[] }>(`/chains/${chainId}/versions?limit=2&before=${newest.next}`);
    expect(rest).toMatchObject({ items: [{ version: 1, name }], next: null });
    expect(Object.keys(rest.items[0] ?? {})).not.toContain("dag");

    const { body: second } = await get(`/chains/${chainId}/versions/2`);
    expect(second).toEqual({ ...newest.items[1], dagJson: JSON.stringify(dag), dag });
    expect(refusal(await get(`/chains/${chainId}/versions/4`))).toEqual([400, "CHAIN_VERSION_NOT_FOUND"]);
    expect(refusal(await get(`/chains/${chainId}/versions/0`))).toEqual([400, "VALIDATION_FAILED"]);
    expect(refusal(await get(`/chains/${UNKNOWN_ID}/versions/1`))).toEqual([400, "CHAIN_NOT_FOUND"]);
  });

  test("do not change runs of an older version", async () => {
    const name = newName();
    const chainId = await chains.define([scripted("work", holds)], { name, maxActiveRuns: 1 });
    const [first, second] = [await chains.start(chainId), await chains.start(chainId)];
    await put(`/chains/${chainId}`, { name, dagJson: DAG, version: 1 });
    expect((await get(`/runs/${second}`)).body).toMatchObject({
      chainVersion: 1,
      dag: { nodes: [{ id: "work" }] },
    });
    expect((await chains.nodes(second)).map(({ nodeId }) => nodeId)).toEqual(["work"]);
    for (const runId of [first, second]) await post(`/runs/${runId}:stop`);
  });
});

describe("summaries of chains", () => {
  test("have the last runs, what starts the chain, what it waits for and how long it takes", async () => {
    const name = newName();
    const chainId = await chains.define(
      [
        { id: "load", type: "noop", waitsFor: ["ORDERS", "SHOPS"] },
        { id: "more", type: "noop", waitsFor: ["ORDERS"], dependsOn: ["load"] },
      ],
      { name },
    );
    await post(`/chains/${chainId}/schedules`, { name: "yearly", cron: "0 0 1 1 *", opTime: { grain: "day" } });
    await post(`/chains/${chainId}/schedules`, { name: "hourly", cron: "0 * * * *", opTime: { grain: "hour" } });
    await database.query(
      `insert into chains.job_run (run_id, chain_id, chain_version, job_name, status, reason, dag_json, op_time, trigger,
                                   triggered_by, created_at, started_at, ended_at)
       select gen_random_uuid(), $1::uuid, 1, 'c', case when n = 25 then 'FAILED' else 'SUCCESS' end,
              case when n = 25 then 'broke' end, '{"nodes": []}', n::text, 'api', 'me', '2020-01-01'::timestamptz + n * '1 hour'::interval,
              '2020-01-01', '2020-01-01'::timestamptz + n * '1 second'::interval
       from generate_series(1, 25) n`,
      [chainId],
    );
    type Summary = Json & { runs: Json[]; p50Ms: number; p95Ms: number };
    const { status, body } = await get<{ items: Summary[]; total: number }>(
      `/chains/summaries?keyword=${encodeURIComponent(name)}`,
    );
    expect([status, body.total]).toEqual([200, 1]);
    const [item] = body.items;
    expect(item).toMatchObject({
      chainId,
      name,
      nodeCount: 2,
      waitsFor: ["ORDERS", "SHOPS"],
      next: { name: "hourly", at: expect.stringMatching(RFC_3339_UTC) },
    });
    expect(item?.runs).toHaveLength(20);
    expect(item?.runs[0]).toMatchObject({ status: "FAILED", reason: "broke", opTime: "25" });
    expect([item?.p50Ms, item?.p95Ms]).toEqual([12_500, expect.closeTo(22_850, 0)]);
  });

  test("of a chain that never ran are there as well", async () => {
    const name = newName();
    await chains.define(NODES, { name });
    const { body } = await get<{ items: Json[] }>(`/chains/summaries?keyword=${encodeURIComponent(name)}`);
    expect(body.items).toMatchObject([{ runs: [], next: null, waitsFor: [], p50Ms: null, p95Ms: null }]);
  });
});

describe("deleting a chain", () => {
  const remove = (chainId: string, query = "") => chains.api.delete(`/api/v1/chains/${chainId}${query}`);

  test("deletes its versions and schedules too, and a preview deletes nothing", async () => {
    const name = newName();
    const { body: made } = await post("/chains", { name, dagJson: DAG });
    const chainId = String(made["chainId"]);
    await put(`/chains/${chainId}`, { name, dagJson: DAG, description: "again", version: 1 });
    await post(`/chains/${chainId}/schedules`, { name: "s", cron: "0 0 * * *" });
    expect(await remove(chainId, "?dryRun=true")).toMatchObject({ status: 200, body: { chainId, name, dryRun: true } });
    expect((await get(`/chains/${chainId}`)).status).toBe(200);
    expect(await remove(chainId)).toMatchObject({ status: 200, body: { chainId, name, dryRun: false } });
    expect(refusal(await get(`/chains/${chainId}`))).toEqual([400, "CHAIN_NOT_FOUND"]);
    expect(await audited(chainId)).toMatchObject({ action: "chain.delete", details: { name } });
    expect((await post("/chains", { name, dagJson: DAG })).status).toBe(200); // Its name is free again.
  });

  test("is refused while runs of it are kept, or another chain runs it", async () => {
    const name = newName();
    const { body: made } = await post("/chains", { name, dagJson: DAG });
    const chainId = String(made["chainId"]);
    const caller = newName();
    const inner = { type: "chain", cfg: { name } };
    const nodes = [{ id: "each", type: "map", cfg: { over: [1], node: inner } }];
    const { body: calling } = await post("/chains", { name: caller, dagJson: { nodes } });
    const named = await remove(chainId);
    expect(refusal(named)).toEqual([409, "CHAIN_IN_USE"]);
    expect(named.body["error"]).toContain(`chain \`${caller}\` names it`);
    expect((await remove(String(calling["chainId"]))).status).toBe(200);
    await chains.reaches(await chains.start(chainId), "SUCCESS");
    const ran = await remove(chainId);
    expect(refusal(ran)).toEqual([409, "CHAIN_IN_USE"]);
    expect(ran.body["error"]).toContain("it has runs");
    expect(refusal(await remove(UNKNOWN_ID))).toEqual([400, "CHAIN_NOT_FOUND"]);
  });
});
