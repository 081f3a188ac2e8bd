/** `millrace kpi apply` against the real server. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { runCli } from "../../../test/cli-in-process.ts";
import { useDatabase } from "../../../test/database.ts";
import { ADMIN_KEY, useMillrace } from "../../../test/millrace.ts";

const server = useMillrace(useDatabase(), { env: { MILLRACE_SECRET_KEY: "5e".repeat(32) } });
const TOKEN = "a-token-that-nobody-may-see";
let folder = "";
let count = 0;
/** Replaces `$` by unique ids for each test. */
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
  const ended = await runCli(["kpi", "apply", await fileWith(text), ...words], env);
  expect(JSON.stringify(ended)).not.toContain(TOKEN);
  return { ...ended, stdout: ended.stdout.replaceAll(own, "$") };
}

const get = async (path: string) => (await server.api.get(`/api/v1/kpi${path}`)).body;

test("everything is shown and created in a valid order, and a second time nothing changes", async () => {
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

test("differences are shown field by field, and missing fields get their defaults", async () => {
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
             retryNum: 8 -> 5

3 to change, 1 to unpublish, 2 unchanged.

Done: 4 changes.
`);
  expect(await get(`/models/M${own}`)).toMatchObject({ state: 0, produces: null, timeoutSeconds: 77 });
  expect(await get(`/subscriptions?kpiId=A${own}`)).toMatchObject({ total: 1, items: [{ retryNum: 5, status: "1" }] });
});

test("an indicator moves from one model to another, whichever comes first", async () => {
  const model = (id: string, kpis: string) =>
    `  ${id}$: { name: ${id}, sql: select 1, dependencies: [{ table: T }], kpis: [${kpis}], publish: false }\n`;
  await apply(`models:\n${model("M", "A$")}${model("N", "A$, B$").replace("A$, ", "")}`);
  const { exit, stdout } = await apply(`models:\n${model("M", "")}${model("N", "A$, B$")}`);
  expect({ exit, stdout }).toMatchObject({ exit: 0, stdout: expect.stringContaining("Done: 2 changes.") });
  expect((await apply(`models:\n${model("M", "A$")}${model("N", "B$")}`)).exit).toBe(0);
  expect(await get(`/models/M${own}`)).toMatchObject({ kpis: [`A${own}`] });
});

test("a secret is sent again only if it is new, has another name, or with --secrets", async () => {
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

test.each(["--yes", "--dry-run"])(
  "all refusals of the server are reported together, with places in the file, before anything is changed: %s",
  async (flag) => {
    const wrong = ORDERS.replace("{ table: DW_B, ", "{ table: DW_B, deadline: PT6, ").replace("C$ / 2", "C$ +* 2");
    const { exit, stdout, stderr } = await apply(wrong, flag);
    expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
    expect(stderr).toMatch(
      /^\S+kpi\.yaml:8:37: models\.M\w+\.dependencies\[1\]: .*`PT6H`.*\[VALIDATION_FAILED\]\n\S+kpi\.yaml:11:3: indicators\.D\w+: [^]*\nNothing was changed\. /,
    );
    expect((await server.api.get(`/api/v1/kpi/indicators/A${own}`)).status).toBe(404);
    const zone = "grain: day\n    timeZone: Europe/Berlim";
    const two = await apply(ORDERS.replace("grain: day", zone).replace("from range", "form range("), flag);
    expect(two.stderr).toMatch(
      /^\S+kpi\.yaml:5:5: models\.M\w+\.timeZone: The field `timeZone`: there is no time zone/,
    );
    const sql = await apply(ORDERS.replace("from range", "form range("), flag);
    expect(sql).toMatchObject({ exit: 2, stdout: "" });
    expect(sql.stderr).toMatch(
      /^\S+kpi\.yaml:5:5: models\.M\w+\.sql: The field `sql` cannot be parsed: .* in line 2\. /,
    );
    const field = await apply(ORDERS.replace("DW_B", "X".repeat(300)), "--json");
    expect(field.stderr).toMatch(/kpi\.yaml:8:39: models\.M\w+\.dependencies\[1\]\.table: The field/);
    expect(JSON.parse(field.stdout)).toMatchObject({
      applied: false,
      refusals: [{ path: ["models", "M$", "dependencies", "1", "table"], code: "VALIDATION_FAILED" }],
    });
    const cycle = await apply(ORDERS.replace("A$ / 2 + B$", "D$ * 2"));
    expect(cycle.stderr).toMatch(
      /^\S+kpi\.yaml:1\d:3: indicators\.[CD]\w+: .*would be computed from itself: .* -> .*\nNothing/,
    );
    const tables = await apply(`models:\n${making("M", "T$", "U$")}${making("N", "U$", "T$")}`);
    expect(tables.stderr).toMatch(/^\S+kpi\.yaml:\d:3: models\.[MN]\w+: The tables would wait for themselves: .* -> /);
  },
);

const making = (id: string, needs: string, produces: string) =>
  `  ${id}$: { name: ${id}, sql: select 1, dependencies: [{ table: ${needs} }], produces: ${produces}, publish: false }\n`;

test("a definition that is valid only with the rest of the file is not refused", async () => {
  const model = (id: string, kpis: string) =>
    `  ${id}$: { name: ${id}, sql: select 1, dependencies: [{ table: T }], kpis: [${kpis}], publish: false }\n`;
  const computed = (id: string, expression: string) =>
    `  ${id}$: { type: COMPUTED, name: ${id}, expression: ${expression} }\n`;
  const before = `models:\n${model("M", "A$, B$")}${making("P", "T$", "U$")}${making("Q", "V$", "T$")}indicators:\n`;
  expect(
    (await apply(`${before}${computed("C", "D$ * 2")}${computed("D", "A$ * 2")}${computed("E", "A$")}`)).exit,
  ).toBe(0);
  // B becomes computed and E no longer is, A gets another model, and a dependency of C is reversed.
  const turned = `models:\n${model("N", "A$, E$")}${model("M", "")}${making("P", "W$", "U$")}${making("Q", "U$", "T$")}indicators:\n`;
  const after = `${turned}${computed("B", "A$ * 2")}${computed("D", "C$ * 2")}${computed("C", "A$ * 3")}  E$: { type: EXTENDED, name: E }\n`;
  expect(await apply(after, "--dry-run")).toMatchObject({ exit: 0, stderr: "" });
  expect(await apply(after)).toMatchObject({ exit: 0, stderr: "" });
});

test("an indicator that another model keeps is refused, also beside one that it releases", async () => {
  const model = (id: string, kpis: string) =>
    `  ${id}$: { name: ${id}, sql: select 1, dependencies: [{ table: T }], kpis: [${kpis}], publish: false }\n`;
  await apply(`models:\n${model("M", "A$")}${model("K", "B$")}`);
  const { exit, stderr } = await apply(`models:\n${model("M", "")}${model("N", "A$, B$")}`);
  expect({ exit, stderr }).toMatchObject({
    exit: 2,
    stderr: expect.stringMatching(/: models\.N\w+\.kpis\[1\]: .*\[KPI_FED_ALREADY\]\n/),
  });
  expect(await get(`/models/M${own}`)).toMatchObject({ version: 1, kpis: [`A${own}`] });
});

test("names that neither the file nor the server has are refused at their place, before anything is changed", async () => {
  const wrong = ORDERS.replace("expression: C$ / 2", "expression: X$ / 2").replace("kpiId: A$", "kpiId: Y$");
  const { exit, stderr } = await apply(wrong);
  expect(exit).toBe(2);
  expect(stderr.replaceAll(own, "$")).toMatch(
    /indicators\.D\$\.expression: The field `expression`: there is no indicator `X\$`.*\n.*subscriptions\[0\]\.kpiId: There is no indicator `Y\$`.*\nNothing was changed/,
  );
  const chain = "models:\n  N$: { name: N, chain: no such chain, dependencies: [{ table: T }] }\n";
  expect((await apply(chain)).stderr.replaceAll(own, "$")).toMatch(
    /models\.N\$\.chain: The field `chain`: there is no chain `no such chain`/,
  );
  expect((await server.api.get(`/api/v1/kpi/models/M${own}`)).status).toBe(404);
});

test("the status of a subscription may be text, as in the API", async () => {
  const off = ORDERS.replace("teamName: growth", 'teamName: growth\n    status: "0"');
  expect((await apply(off)).exit).toBe(0);
  expect((await apply(off.replace('"0"', "0"))).stdout).toContain("5 unchanged.");
  expect(await get(`/subscriptions?kpiId=A${own}`)).toMatchObject({ items: [{ status: "0" }] });
});

test("a signing key is printed even if a later change is refused", async () => {
  const { exit, stderr } = await apply(`${ORDERS}  - { kpiId: A$, callbackUrl: "ftp://example.org" }\n`);
  expect(exit).toBe(2);
  expect(stderr).toMatch(
    /^Signing key of A\S+ to .*: whsec_\S+\n\S+kpi\.yaml:19:5: subscriptions\[1\]: The callback URL.*\n6 of 7 changes/,
  );
});

test("an invalid file is refused without a call", async () => {
  const { exit, stdout, stderr } = await apply(ORDERS.replace("grain: day", "grian: day"));
  expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
  expect(stderr).toMatch(/^\S+kpi\.yaml:4:5: models\.M\w+\.grian: it is not a field\. Did you mean `grain`\?\n$/);
  expect((await runCli(["kpi", "apply", join(folder, "nowhere.yaml")])).exit).toBe(2);
});

test("--json prints the changes", async () => {
  const dry = await apply(ORDERS, "--dry-run", "--json");
  expect(JSON.parse(dry.stdout)).toMatchObject({
    applied: false,
    changes: [{ action: "create", name: "A$" }, {}, {}, {}, {}, {}],
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
