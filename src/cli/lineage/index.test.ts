/** `millrace lineage` against the real server: tenants, events and queries. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cliFor, runCli } from "../../../test/cli-in-process.ts";
import { api, type Json } from "../../../test/client.ts";
import { useDatabase } from "../../../test/database.ts";
import { useMillrace } from "../../../test/millrace.ts";
import { until } from "../../../test/until.ts";
import {
  airflowEvent,
  columnLineageFacet,
  dataset,
  gravitinoEvent,
  lifecycleFacet,
  runEvent,
  schemaFacet,
} from "../../lineage/events.fixture.ts";

const database = useDatabase();
const server = useMillrace(database, { env: { MILLRACE_ROLES: "api,worker" } });
const admin = (...words: string[]) => cliFor(server)("lineage", ...words);
/** With a key of tenant 7. */
const millrace = (...words: string[]) => runCli(["lineage", ...words], { MILLRACE_URL: server.url, MILLRACE_KEY: key });
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g;
const DB = "postgres://db:5432";
/** The common prefix of the table names. */
const IN = `${DB}.shop.public`;
const run = (last: number) => `0195a000-0000-7000-8000-00000000000${last}`;

let folder: string;
let key: string;

async function file(name: string, ...events: Json[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, events.map((event) => JSON.stringify(event)).join("\n"));
  return path;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-lineage-"));
  await server.api.post("/api/v1/lineage/tenants", { id: 7, code: "acme", name: "Acme Inc.", state: "READY" });
  const made = await server.api.post<{ key: string }>("/api/v1/keys", {
    name: "spark",
    scopes: ["lineage:read", "lineage:write"],
    tenantId: 7,
    source: "COMPUTE_ENGINE",
  });
  key = made.body.key;
  const sum = [{ type: "DIRECT", subtype: "AGGREGATION", description: "sum", masking: true }];
  const events = [
    runEvent({
      eventTime: "2026-03-01T09:00:00Z",
      jobName: "load",
      runId: run(1),
      inputs: [dataset(DB, "shop.public.raw", schemaFacet(["id", "amount"]))],
      outputs: [
        dataset(DB, "shop.public.orders", {
          ...schemaFacet(["id", "amount"]),
          ...columnLineageFacet({ amount: [[DB, "shop.public.raw", "amount"]] }),
        }),
      ],
    }),
    airflowEvent("insert into daily select sum(amount) from orders group by id", {
      runId: run(2),
      inputs: [dataset(DB, "shop.public.orders"), dataset(DB, "shop.public.raw")],
      outputs: [
        dataset(DB, "shop.public.daily", {
          ...schemaFacet(["revenue"]),
          ...columnLineageFacet({
            revenue: [
              [DB, "shop.public.orders", "amount", sum],
              [DB, "shop.public.orders", "id", [{ type: "INDIRECT", subtype: "GROUP_BY" }]],
            ],
          }),
        }),
      ],
    }),
    runEvent({
      eventTime: "2026-03-01T11:00:00Z",
      jobName: "back",
      runId: run(3),
      inputs: [dataset(DB, "shop.public.daily")],
      outputs: [dataset(DB, "shop.public.orders")],
    }),
  ];
  const taken = await api(server.url, key).post("/api/v1/lineage/batch", events);
  expect(taken.body).toMatchObject({ status: "success" });
});
afterAll(() => rm(folder, { recursive: true }));

/** The id of an asset, which depends on the order of the events. */
async function idOf(name: string): Promise<string> {
  const { body } = await server.api.get<{ items: { id: string }[] }>(
    `/api/v1/lineage/assets?tenant=7&name=${encodeURIComponent(name)}`,
  );
  expect(body.items).toHaveLength(1);
  return body.items[0]?.id ?? "";
}

describe("tenants", () => {
  test("are created, changed and listed", async () => {
    expect(await admin("tenant", "create", "8", "--code", "beta", "--name", "Beta")).toEqual({
      exit: 0,
      stderr: "",
      stdout: `Tenant 8 (beta) is NEW: its events are stored until \`millrace lineage ready 8\`.

Clients that send its events need a key:
  millrace keys create NAME --scopes lineage:write --tenant 8 --source COMPUTE_ENGINE
`,
    });
    expect(await admin("tenant", "create", "8", "--code", "gamma", "--name", "Gamma")).toMatchObject({ exit: 3 });
    expect((await admin("tenant", "set", "8", "--rate-limit", "600", "--name", "Beta Ltd.")).stdout).toBe(
      "Tenant 8 (beta) accepts 600 events per minute, up to the size limit of the server.\n",
    );
    expect((await admin("tenants", "--state", "new")).stdout.replace(TIME, "<time>")).toBe(
      `ID  CODE  NAME       STATE  EVENTS PER MINUTE  CREATED
8   beta  Beta Ltd.  NEW    600                <time>
`,
    );
    expect((await admin("tenant", "set", "8", "--rate-limit", "none")).stdout).toContain("any number of events");
    expect(await admin("tenant", "set", "8")).toMatchObject({ exit: 2, stderr: expect.stringContaining("--code") });
    expect((await millrace("tenants", "--json")).stdout).toMatch(/^\{"items":\[\{"id":7,.*"total":1\}\n$/);
    expect((await millrace("tenant", "create", "9", "--code", "x", "--name", "X")).exit).toBe(5);
    expect(await admin("tenant")).toMatchObject({
      exit: 2,
      stdout: expect.stringContaining("  create ID  Create a tenant"),
    });
  });

  test("are synced: the baseline at once, older events never, newer ones when it is ready", async () => {
    await admin("tenant", "create", "9", "--code", "nine", "--name", "Nine");
    const started = await admin("sync-start", "9", "--cutover", "2026-03-01T00:00:00Z");
    expect(started.stdout).toBe(`Tenant 9 (nine) is SYNCING, with the cutover at 2026-03-01T00:00:00Z.

Send the full sync, then apply the stored events:
  millrace lineage send FILE... --baseline 9
  millrace lineage ready 9
`);
    const created = (name: string, eventTime: string) =>
      gravitinoEvent("create_table", { tenantId: 9, name, eventTime, facets: schemaFacet(["id"]) });
    const baseline = await file("baseline.json", created("dw.old", "2026-01-01T00:00:00Z"));
    const waiting = await file(
      "waiting.json",
      created("dw.older", "2026-02-01T00:00:00Z"),
      created("dw.newer", "2026-03-02T00:00:00Z"),
    );
    expect((await admin("send", baseline, "--baseline", "9")).stdout).toBe("Accepted: 1 of 1 event.\n");
    expect((await admin("send", waiting)).stdout).toBe("Accepted: 2 of 2 events.\n");
    expect((await admin("events", "--state", "buffered", "--tenant", "9")).stdout).toMatch(/ BUFFERED\n.* BUFFERED\n$/);
    expect((await admin("ready", "9")).stdout).toBe(
      "Tenant 9 (nine) is READY. Stored events: 1 applied, 1 from before the cutover skipped.\n",
    );
    expect((await admin("ready", "9")).stdout).toBe("Tenant 9 (nine) is READY. There were no stored events.\n");
    expect((await admin("send", baseline, "--baseline", "9")).exit).toBe(3);
    const tables = await admin("search", "dw", "--kind", "table", "--tenant", "9");
    expect(tables.stdout).toContain("hive.dw.old ");
    expect(tables.stdout).toContain("hive.dw.newer ");
    expect(tables.stdout).not.toContain("hive.dw.older ");
    expect(await admin("ready", "99")).toMatchObject({
      exit: 4,
      stderr: "There is no tenant 99. [TENANT_NOT_FOUND]\n",
    });
  });

  test("must be named if there are several, unless the key has a tenant", async () => {
    expect(await admin("stats")).toEqual({
      exit: 2,
      stdout: "",
      stderr: "There are 4 tenants: choose one with --tenant. `millrace lineage tenants` lists them.\n",
    });
    expect((await admin("stats", "--tenant", "7")).exit).toBe(0);
    expect((await admin("stats", "--tenant", "nine")).exit).toBe(0);
    expect(await admin("stats", "--tenant", "nobody")).toMatchObject({
      exit: 4,
      stderr: "There is no tenant with the code `nobody`. `millrace lineage tenants` lists them.\n",
    });
    expect((await millrace("stats", "--tenant", "8")).exit).toBe(4);
  });
});

describe("assets", () => {
  test("are found by words", async () => {
    expect(
      (await millrace("search", "DAILY", "revenue")).stdout,
    ).toBe(`ID  KIND    NAME${" ".repeat(IN.length + 12)}FOUND IN
${(await idOf("revenue")).padEnd(2)}  COLUMN  ${IN}.daily.revenue  name
`);
    const { stdout } = await millrace("search", "sum", "--kind", "sql", "--mode", "hybrid");
    expect(stdout).toContain("  SQL   airflow/dag.task  content: insert into daily select sum(amount) from orders");
    expect(stdout).toMatch(/\n\nThe tenant has chosen no model, so only the words were searched\.\n$/);
    expect((await millrace("search", "nowhere")).stdout).toBe("There are no such assets.\n");
    expect(await millrace("search", "money", "--mode", "semantic")).toEqual({
      exit: 3,
      stdout: "",
      stderr:
        "Tenant 7 has no model, which semantic search needs. Set one with `millrace lineage model 7`, or search by words, without --mode.\n",
    });
  });

  test("are shown with their columns, neighbours and events", async () => {
    const { exit, stdout } = await millrace("show", `${IN}.orders`);
    expect(exit).toBe(0);
    expect(stdout.replace(/(?<=known since +)\S+/, "<time>").replaceAll(/^\d+ +(?=2026)/gm, "N      ")).toBe(
      `TABLE ${IN}.orders (id ${await idOf("orders")})

  producer     https://github.com/OpenLineage/OpenLineage/tree/1.40.0/integration/spark
  namespace    ${DB}
  datasetName  shop.public.orders
  neighbours   read by 1, written by 2
  known since  <time>
  last event   2026-03-01T11:00:00Z

Columns:
COLUMN  TYPE
id      string
amount  string

Newest events:
EVENT  TIME                  TYPE      JOB               RUN                                   STATE
N      2026-03-01T11:00:00Z  COMPLETE  spark/back        ${run(3)}  APPLIED
N      2026-03-01T10:00:00Z  COMPLETE  airflow/dag.task  ${run(2)}  APPLIED
N      2026-03-01T09:00:00Z  COMPLETE  spark/load        ${run(1)}  APPLIED
`,
    );
    const sql = await millrace("show", "airflow/dag.task");
    expect(sql.stdout).toContain("\nStatement:\n  insert into daily select sum(amount) from orders group by id\n");
  });

  test("that do not exist, or are ambiguous, are reported", async () => {
    expect(await millrace("show", "nothing")).toEqual({
      exit: 4,
      stdout: "",
      stderr: "There is no asset `nothing`. Use `millrace lineage search` to find assets by words in their names.\n",
    });
    const { exit, stderr } = await millrace("show", "amount");
    expect({ exit, stderr }).toEqual({
      exit: 2,
      stderr: expect.stringMatching(
        /^Several assets are named `amount`: \d+ \(COLUMN \S+\.\w+\.amount\), \d+ \(COLUMN .*or a full name\.\n$/,
      ),
    });
    expect((await millrace("graph", "nothing")).exit).toBe(4);
    expect((await millrace("show", "123456")).exit).toBe(4);
  });
});

test("dropped assets are found on request, and show which event dropped them", async () => {
  const table = (facets: Json) => dataset(DB, "shop.public.retired", facets);
  for (const event of [
    runEvent({ jobName: "make", runId: run(4), outputs: [table(schemaFacet(["id"]))] }),
    runEvent({
      eventTime: "2026-03-02T00:00:00Z",
      jobName: "remove",
      runId: run(5),
      outputs: [table(lifecycleFacet("DROP"))],
    }),
  ])
    await api(server.url, key).post("/api/v1/lineage/batch", [event]);
  expect((await millrace("search", "retired", "--kind", "table")).stdout).toBe("There are no such assets.\n");
  const { stdout } = await millrace("search", "retired", "--kind", "table", "--dropped");
  const [, id = ""] = /^(\d+) +TABLE +\S+\.retired \(dropped\) +name/m.exec(stdout) ?? [];
  expect((await millrace("show", id)).stdout).toMatch(
    /dropped +2026-03-02T00:00:00Z, by remove \(event \d+\)\n\nColumns:\n.*\nid /,
  );
});

describe("graphs", () => {
  test("are trees up and down, with cycles and repeats marked", async () => {
    const job = async (name: string) => `(JOB ${await idOf(name)})`;
    const sql = `(SQL ${await idOf("dag.task")})`;
    expect((await millrace("graph", "daily")).stdout).toBe(`Comes from:
  ${IN}.daily
  └─ airflow/dag.task ${sql}
     ├─ ${IN}.orders
     │  ├─ spark/back ${await job("back")}
     │  │  └─ ${IN}.daily ↻
     │  └─ spark/load ${await job("load")}
     │     └─ ${IN}.raw …
     └─ ${IN}.raw

Goes to:
  ${IN}.daily
  └─ spark/back ${await job("back")}
     └─ ${IN}.orders
        └─ airflow/dag.task ${sql}
           └─ ${IN}.daily ↻

… is drawn elsewhere with its children   ↻ is part of a cycle
`);
    expect((await millrace("graph", "raw", "--up")).stdout).toBe("Comes from:\n  Nothing is known.\n");
  });

  test("say that they are incomplete", async () => {
    const short = (await millrace("graph", "raw", "--down", "--depth", "1")).stdout;
    expect(short).toContain(`Goes to:\n  ${IN}.raw\n`);
    expect(short).toMatch(/\n\nThere may be more beyond 1 step; raise --depth to see it\.\n$/);
    const part = (await millrace("graph", "raw", "--max-nodes", "2")).stdout;
    expect(part).toMatch(/\nThis is only a part of the graph: it has too many nodes\. .*--max-nodes/);
    expect((await millrace("graph", "raw", "--depth", "99")).exit).toBe(2);
  });

  test("of columns show transformations", async () => {
    expect((await millrace("columns", `${IN}.daily.revenue`, "--up")).stdout).toBe(`Comes from:
  ${IN}.daily.revenue
  ├─ ${IN}.orders.amount [aggregation (sum, masking), masked]
  │  └─ ${IN}.raw.amount [identity, masked]
  └─ ${IN}.orders.id [indirect group by]
`);
  });

  test("list what a change affects, also as CSV", async () => {
    expect(
      (await millrace("impact", `${IN}.raw.amount`)).stdout,
    ).toBe(`STEPS  KIND    NAME${" ".repeat(IN.length + 12)}VIA
1      COLUMN  ${IN}.orders.amount
2      COLUMN  ${IN}.daily.revenue  ${IN}.orders.amount
`);
    const { stdout, stderr } = await millrace("impact", `${IN}.raw.amount`, "--csv");
    expect({ stdout, stderr }).toEqual({
      stderr: "",
      stdout: `distance,kind,id,name,owner,via,description,transformations,lastRunAt\r
1,COLUMN,${await idOf(`${IN}.orders.amount`)},${IN}.orders.amount,,,,DIRECT IDENTITY,\r
2,COLUMN,${await idOf("revenue")},${IN}.daily.revenue,,${IN}.orders.amount,,DIRECT AGGREGATION,\r
`,
    });
    expect((await millrace("impact", "revenue")).stdout).toBe("A change to revenue affects no known asset.\n");
    expect((await millrace("impact", "raw", "--csv", "--json")).exit).toBe(2);
    expect(await millrace("impact", "nothing", "--csv")).toMatchObject({ exit: 4, stdout: "" });
  });
});

describe("events", () => {
  test("are listed by asset, job and state, in pages, and printed unchanged", async () => {
    const first = (await millrace("events", "--asset", `${IN}.daily`, "--limit", "1")).stdout;
    expect(first).toMatch(/^EVENT .*\n\d+ +2026-03-01T11:00:00Z +COMPLETE +spark\/back .* APPLIED\n\nFor older ones: /);
    const cursor = /--cursor (\S+)/.exec(first)?.[1] ?? "";
    const second = (await millrace("events", "--asset", `${IN}.daily`, "--cursor", cursor)).stdout;
    expect(second).toMatch(/^EVENT .*\n\d+ +\S+ +COMPLETE +airflow\/dag\.task .* APPLIED\n$/);

    const ofJob = (await millrace("events", "--job-namespace", "spark", "--job", "load")).stdout;
    expect(ofJob).toMatch(/^EVENT .*\n(\d+) .*spark\/load/);
    const id = /^(\d+) /m.exec(ofJob)?.[1] ?? "";
    expect(JSON.parse((await millrace("event", id)).stdout)).toMatchObject({ job: { name: "load" } });
    expect((await millrace("event", "999999")).exit).toBe(4);
    expect(await millrace("events", "--job", "load")).toMatchObject({ exit: 2 });
    expect((await millrace("events", "--state", "dead")).stdout).toBe("There are no such events.\n");
  });

  test("that could not be applied are listed with the reason, fail again, and are finally applied", async () => {
    expect((await millrace("dead-letters")).stdout).toBe("There are no such dead letters.\n");
    expect((await millrace("replay", "--all")).stdout).toBe("There are no dead letters.\n");
    await database.query("alter table lineage.node add constraint no_curse check (name not like 'broken%')");
    const broken = [1, 2, 3].map((nr) => runEvent({ jobName: `job${nr}`, outputs: [dataset(DB, `a.b.broken${nr}`)] }));
    expect((await millrace("send", await file("broken.jsonl", ...broken))).exit).toBe(0); // They are stored.

    const listed = (await millrace("dead-letters")).stdout;
    expect(listed.match(/ spark\/job\d .* DEAD +.*no_curse.*\n/g)).toHaveLength(3);
    const id = /^(\d+) /m.exec(listed)?.[1] ?? "";
    expect(await millrace("replay", id)).toMatchObject({
      exit: 1,
      stdout: `Event ${id} failed again. \`millrace lineage dead-letters\` shows why.\n`,
    });
    expect(await millrace("replay", "--all")).toMatchObject({
      exit: 1,
      stdout: "0 applied, 3 failed again. `millrace lineage dead-letters` shows why.\n",
    });

    await database.query("alter table lineage.node drop constraint no_curse");
    expect((await millrace("replay", id)).stdout).toBe(`Event ${id} is applied.\n`);
    expect(await millrace("replay", id)).toMatchObject({ exit: 4, stdout: "" });
    expect(await millrace("replay", "--all", "--json")).toMatchObject({
      exit: 0,
      stdout: '{"applied":2,"dead":0,"remaining":0}\n',
    });
    expect(await millrace("replay")).toMatchObject({ exit: 2 });
    expect(await millrace("replay", id, "--all")).toMatchObject({ exit: 2 });
  });
});

test("a model is set, its tasks are listed, and it is removed again", async () => {
  expect((await millrace("model", "7")).stdout).toBe("Tenant 7 has no model: nothing is computed for its assets.\n");
  expect(await millrace("model", "7", "--builtin"), "which is for admins").toMatchObject({ exit: 5, stdout: "" });
  expect((await admin("model", "7", "--builtin")).stdout).toBe(`FOR        PROVIDER  MODEL     DIMENSION
embedding  builtin   hash-v1   384
summary    builtin   rules-v1
`);
  const summary = await until(async () => {
    const { stdout } = await millrace("tasks", "--type", "sql_summary");
    return stdout.includes("SUCCEEDED") && stdout;
  }, "the summary");
  expect(summary).toMatch(/^TASK .*\n\d+ +SQL_SUMMARY +SQL +\d+ +builtin:rules-v1 +SUCCEEDED +\S+Z\n$/);
  expect((await millrace("tasks", "--status", "dead")).stdout).toBe("There are no such tasks.\n");
  expect(await millrace("model", "7", "--builtin", "--none")).toMatchObject({ exit: 2, stdout: "" });
  expect(await millrace("model", "7", "--set", "{")).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining("--set is `{`"),
  });
  expect((await admin("model", "7", "--none")).stdout).toContain("has no model");
});

test("the statistics of a tenant", async () => {
  expect((await admin("stats", "--tenant", "9")).stdout).toBe(`Assets:
  CATALOG  1
  SCHEMA   1
  TABLE    2
  COLUMN   2
  and 0 edges

Events:
  0 in 24 hours, 0 in 7 days, the newest at 2026-03-02T00:00:00Z
`);
});
