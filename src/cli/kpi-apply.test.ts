/** `millrace kpi apply` as a process, against the real server. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startCli, startScript } from "../../test/cli.ts";
import { useDatabase } from "../../test/database.ts";
import { ADMIN_KEY, useMillrace } from "../../test/millrace.ts";

const server = useMillrace(useDatabase(), { env: { MILLRACE_SECRET_KEY: "5e".repeat(32) } });
const TOKEN = "a-token-that-nobody-may-see";
let folder = "";
let count = 0;
/** Ids of its own for each test, in place of `$`. */
let own = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-kpi-"));
});
afterAll(() => rm(folder, { recursive: true }));
beforeEach(() => {
  count += 1;
  own = `_${count}_`;
});

const ORDERS = `models:
  M$:
    name: Orders
    grain: day
    sql: |
      select 'A$' as kpi_id, 1 as value
      from range(1)
    dependencies: [{ table: DW_A }, { table: DW_B, optional: true }]
    kpis: [B$, A$]
indicators:
  D$: { type: COMPUTED, name: Quarter, expression: C$ / 2 }
  C$: { type: COMPUTED, name: Half, expression: "A$ / 2 + B$" }
  A$: { type: EXTENDED, name: Orders }
subscriptions:
  - kpiId: A$
    callbackUrl: https://example.org/hook/$
    teamName: growth
    secret: Header,Authorization,Bearer \${env.TOKEN}
`;

async function fileWith(text: string): Promise<string> {
  const path = join(folder, "kpi.yaml");
  await writeFile(path, text.replaceAll(/\$(?!\{)/g, own));
  return path;
}

async function apply(text: string, ...words: string[]) {
  const env = { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY, TOKEN };
  const ended = await startCli(["kpi", "apply", await fileWith(text), ...words], env).ended;
  expect(JSON.stringify(ended)).not.toContain(TOKEN);
  return { ...ended, stdout: ended.stdout.replaceAll(own, "$") };
}

const get = async (path: string) => (await server.api.get(`/api/v1/kpi${path}`)).body;

test("everything is created in an order that works, shown first, and a second time nothing changes", async () => {
  const plan = `create   indicator A$
create   model M$
create   indicator C$
create   indicator D$
publish  model M$
create   subscription A$ to https://example.org/hook/$ (growth)

5 to create, 1 to publish.
`;
  expect(await apply(ORDERS, "--dry-run")).toEqual({ exit: 0, stdout: plan, stderr: "" });
  expect((await server.api.get(`/api/v1/kpi/models/M${own}`)).status).toBe(404);

  const first = await apply(ORDERS);
  expect(first).toMatchObject({ exit: 0, stderr: "" });
  expect(first.stdout).toContain(`${plan}\nDone: 6 changes.\nSigning key of A$ to https://example.org/hook/$`);
  expect(first.stdout).toMatch(/shown only this once: whsec_\S+\n$/);
  expect(await get(`/models/M${own}`)).toMatchObject({ state: 1, version: 1, kpis: [`A${own}`, `B${own}`] });
  expect(await get(`/subscriptions?kpiId=A${own}`)).toMatchObject({
    items: [{ secretType: "Header", secretKey: "Authorization" }],
  });

  const second = await apply(ORDERS);
  expect(second).toMatchObject({ exit: 0, stdout: expect.stringMatching(/\n\n5 unchanged\.\n$/) });
  expect(second.stdout).not.toMatch(/create|change |publish/);
  expect(await get(`/models/M${own}`)).toMatchObject({ version: 1 });
});

test("what differs is shown field by field, and what the file leaves out goes back to its default", async () => {
  await apply(ORDERS);
  const long = await get(`/models/M${own}`);
  await server.api.put(`/api/v1/kpi/models/M${own}`, {
    ...Object.fromEntries(["name", "sql", "kpis", "grain"].map((field) => [field, long[field]])),
    dependencies: [{ table: "DW_A" }],
    produces: "DW_C",
    timeoutSeconds: 77,
  });
  const changed = ORDERS.replace("from range(1)", "from range(2)")
    .replace("Orders }", "Orders of a day }")
    .replace("teamName: growth", "teamName: growth\n    retryNum: 5")
    .replace("grain: day", "grain: day\n    publish: false");
  expect((await apply(changed)).stdout).toBe(`unpublish  model M$
change     indicator A$
             name: Orders -> Orders of a day
change     model M$
             produces: DW_C -> none
             sql:
               - from range(1)
               + from range(2)
             dependencies:
               + table: DW_B, optional: true
unchanged  indicator C$
unchanged  indicator D$
change     subscription A$ to https://example.org/hook/$ (growth)
             retryNum: 3 -> 5

3 to change, 1 to unpublish, 2 unchanged.

Done: 4 changes.
`);
  expect(await get(`/models/M${own}`)).toMatchObject({ state: 0, produces: null, timeoutSeconds: 77 });
  expect(await get(`/subscriptions?kpiId=A${own}`)).toMatchObject({ total: 1, items: [{ retryNum: 5, status: "1" }] });
});

test("an indicator moves from one model to another, whichever stands first", async () => {
  const model = (id: string, kpis: string) =>
    `  ${id}$: { name: ${id}, sql: select 1, dependencies: [{ table: T }], kpis: [${kpis}], publish: false }\n`;
  await apply(`models:\n${model("M", "A$")}${model("N", "A$, B$").replace("A$, ", "")}`);
  const { exit, stdout } = await apply(`models:\n${model("M", "")}${model("N", "A$, B$")}`);
  expect({ exit, stdout }).toMatchObject({ exit: 0, stdout: expect.stringContaining("Done: 2 changes.") });
  expect((await apply(`models:\n${model("M", "A$")}${model("N", "B$")}`)).exit).toBe(0);
  expect(await get(`/models/M${own}`)).toMatchObject({ kpis: [`A${own}`] });
});

test("a secret is sent again only when it is new, has another name, or --secrets asks for it", async () => {
  await apply(ORDERS);
  const subscription = `unchanged  subscription`;
  expect((await apply(ORDERS.replace("Bearer", "Basic"))).stdout).toContain(subscription);
  expect((await apply(ORDERS, "--secrets")).stdout).toMatch(/change +subscription.*\n +secret \(not shown\)\n/);
  expect((await apply(ORDERS.replace("Authorization", "X-Key"))).stdout).toMatch(/change +subscription/);
  expect(await get(`/subscriptions?kpiId=A${own}`)).toMatchObject({ items: [{ secretKey: "X-Key" }] });
  const none = ORDERS.replace(/secret: .*/, "secret: null");
  expect((await apply(none)).stdout).toMatch(/change +subscription/);
  expect((await apply(none)).stdout).toContain(subscription);
  expect((await apply(ORDERS.replace(/ +secret: .*\n/, ""))).stdout).toContain(subscription);
});

test("what the server refuses is told with its place in the file, and what was done before it", async () => {
  const { exit, stdout, stderr } = await apply(ORDERS.replace("{ table: DW_B, ", "{ table: DW_B, deadline: PT6, "));
  expect(exit).toBe(2);
  expect(stdout).toContain("5 to create");
  expect(stderr).toMatch(
    /kpi\.yaml:8:37: models\.M\w+\.dependencies\[1\]: .*`PT6H`.*\[VALIDATION_FAILED\]\n1 of 6 changes/,
  );
  const field = await apply(ORDERS.replace("DW_B", "X".repeat(300)), "--json");
  expect(field.stderr).toMatch(/kpi\.yaml:8:39: models\.M\w+\.dependencies\[1\]\.table: The field/);
  expect(field.stdout).toContain('"code":"VALIDATION_FAILED"');
  const cycle = await apply(ORDERS.replace("A$ / 2 + B$", "D$ * 2"));
  expect(cycle.stderr).toMatch(/kpi\.yaml:1\d:3: indicators\.[CD]\w+: .*would be computed from itself/);
});

test("a signing key is told also if something behind it is refused", async () => {
  const { exit, stderr } = await apply(`${ORDERS}  - { kpiId: A$, callbackUrl: "ftp://example.org" }\n`);
  expect(exit).toBe(2);
  expect(stderr).toMatch(
    /^Signing key of A\S+ to .*: whsec_\S+\n\S+kpi\.yaml:19:5: subscriptions\[1\]: The callback URL.*\n6 of 7 changes/,
  );
});

test("a file that is wrong is refused before anything is asked of the server", async () => {
  const { exit, stdout, stderr } = await apply(ORDERS.replace("grain: day", "grian: day"));
  expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
  expect(stderr).toMatch(/^\S+kpi\.yaml:4:5: models\.M\w+\.grian: there is no such field\. Did you mean `grain`\?\n$/);
  expect((await startCli(["kpi", "apply", join(folder, "nowhere.yaml")]).ended).exit).toBe(2);
});

test("--json tells what was changed, and standard input will do for a file", async () => {
  const path = await fileWith(ORDERS);
  const env = { MILLRACE_URL: server.url, MILLRACE_KEY: ADMIN_KEY, TOKEN, FILE: path };
  const dry = await startScript('millrace kpi apply - --dry-run --json <"$FILE"', env).ended;
  expect(JSON.parse(dry.stdout)).toMatchObject({
    applied: false,
    changes: [{ action: "create", name: `A${own}` }, {}, {}, {}, {}, {}],
  });
  const { stdout } = await apply(ORDERS, "--json", "--yes");
  const { applied, changes } = JSON.parse(stdout);
  expect(applied).toBe(true);
  expect(changes.at(-1)).toMatchObject({
    kind: "subscription",
    action: "create",
    signingKey: expect.stringMatching(/^whsec_/),
  });
});
