/** The registry on a real Postgres: what applying a definition writes, and what it leaves alone. */
import * as fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { noHints } from "../../../test/no-hints.ts";
import type { Actor } from "../../kernel/auth/audit.ts";
import { SEEDED_DICTIONARY } from "../spec/dictionary.ts";
import { findSource, lockSource, writeSource } from "../store/sources/registry.ts";
import { definitions, definitionWith, ORDERS } from "./definition.fixture.ts";
import type { Definition } from "./definition.ts";
import { createRegistry } from "./registry.ts";
import { definitionOf, normalised, partsOf } from "./rows.ts";

const database = useDatabase();
const NOW = Date.UTC(2026, 0, 1, 12);
let now = NOW;
let hints = 0;

beforeEach(async () => {
  now = NOW;
  hints = 0;
  await database.query("delete from harvest.ing_plan");
  await database.query("delete from harvest.ing_schedule_instance");
  await database.query("delete from harvest.reg_provenance");
  await database.query("delete from kernel.audit_log");
});

const actor: Actor = {
  caller: { name: "ann", keyId: null, scopes: [], tenantId: null, source: null, rateLimitPerMinute: null },
  address: "127.0.0.1",
  requestId: "r-1",
};
const registry = () =>
  createRegistry({
    wake: { hint: () => undefined },
    hints: noHints,
    db: database.db,
    clock: { now: () => now },
    secrets: { list: async () => [] },
    allowPrivate: ["localhost:8080"],
    tables: {
      of(engine) {
        if (engine !== "warehouse") throw new Error(`There is no engine \`${engine}\`.`);
      },
    },
    onSchedules: () => {
      hints += 1;
    },
  });
const apply = (definition: Definition, baseUrl?: string) =>
  registry().apply(definition.source, definition, { baseUrl }, actor);
const revisions = async () =>
  (await database.query<{ revision: number }>("select revision from harvest.reg_provenance")).map(
    (row) => row.revision,
  );
const endpointRows = () =>
  database.query<{ endpoint_id: number; endpoint_name: string; removed: boolean }>(
    `select endpoint_id, endpoint_name, removed_at is not null as removed from harvest.reg_prov_endpoint_def order by endpoint_name`,
  );
const schedule = { endpoint: "orders", operation: "HARVEST", cron: "0 3 * * *", timeZone: "UTC" } as const;

/** A plan of the endpoint, as far as the registry looks at it. */
async function plan(endpointId: number): Promise<void> {
  await database.query(
    `with instance as (
       insert into harvest.ing_schedule_instance (schedule_instance_id, scheduler_code, provenance_code, endpoint_name,
         operation_code, trigger_type_code, trigger_params, created_by)
       values (gen_random_uuid(), 'api', 'shop', 'orders', 'HARVEST', 'MANUAL', '{}', 'ann') returning schedule_instance_id
     ), snapshot as (
       insert into harvest.snapshot (spec_fingerprint, snapshot, origins) values ('f', '{}', '{}')
       on conflict (spec_fingerprint) do update set origins = '{}' returning spec_fingerprint
     )
     insert into harvest.ing_plan (plan_id, schedule_instance_id, provenance_code, endpoint_id, endpoint_name, operation_code,
       plan_strategy, spec_fingerprint, expr_proto_hash, namespace_scope_code, namespace_key, priority, planned_at, plan_month)
     select gen_random_uuid(), schedule_instance_id, 'shop', $1::integer, 'orders', 'HARVEST', 'TIME', spec_fingerprint, 'p',
       'EXPR', 'orders', 100, now(), '2026-01-01' from instance, snapshot`,
    [endpointId],
  );
}

test("every definition comes back from its rows as it was written, in its normal form", async () => {
  await fc.assert(
    fc.asyncProperty(definitions, fc.option(fc.webUrl()), async (definition, override) => {
      const read = await database.db.tx(async (tx) => {
        await lockSource(tx, definition.source);
        await writeSource(tx, partsOf(definition, override), { by: "ann", nextAt: () => null });
        return findSource(tx, definition.source);
      });
      expect(read && definitionOf(read)).toEqual(normalised(definition));
      expect(read?.base_url_override).toBe(override);
    }),
    { numRuns: 25 },
  );
});

test("the dictionary has the codes that definitions are checked against", async () => {
  const rows = await registry().dictionary();
  const stored = Object.fromEntries(rows.map(({ type_code, items }) => [type_code, items.map(({ code }) => code)]));
  const sorted = Object.entries(SEEDED_DICTIONARY).map(([type, codes]) => [type, codes.toSorted()]);
  expect(Object.fromEntries(Object.entries(stored).map(([type, codes]) => [type, codes.toSorted()]))).toEqual(
    Object.fromEntries(sorted),
  );
});

describe("applying a definition", () => {
  test("creates the source, and a repeat writes nothing", async () => {
    const definition = definitionWith({}, { credentials: { key: { env: "KEY" } }, schedules: { daily: schedule } });
    expect(await apply(definition)).toMatchObject({ outcome: "created", revision: 1, changes: [] });
    const written = () =>
      database.query(
        `select p.xmin as p, e.xmin as e, c.xmin as c, h.xmin as h, s.xmin as s, (select count(*) from kernel.audit_log) as audited
         from harvest.reg_provenance p, harvest.reg_prov_endpoint_def e, harvest.reg_prov_credential c,
              harvest.reg_prov_http_cfg h, harvest.ing_schedule s`,
      );
    const before = await written();
    expect(before).toHaveLength(1);
    expect(await apply(definition)).toMatchObject({ outcome: "unchanged", revision: 1, changes: [] });
    expect(await written()).toEqual(before);
    expect(hints).toBe(1);
  });

  test("raises the revision with each change, and names the fields", async () => {
    await apply(definitionWith());
    const changed = await apply(definitionWith({ retry: { maxAttempts: 2 }, path: "/v2" }, { description: "Orders" }));
    expect(changed).toMatchObject({
      outcome: "changed",
      revision: 2,
      changes: [
        { field: "description", to: "Orders" },
        { field: "endpoints.orders.path", from: "/orders", to: "/v2" },
        { field: "endpoints.orders.retry", to: { maxAttempts: 2 } },
      ],
    });
    expect((await registry().get("shop")).definition).toEqual(
      normalised(definitionWith({ retry: { maxAttempts: 2 }, path: "/v2" }, { description: "Orders" })),
    );
    expect(await database.query("select actor, action, target, details from kernel.audit_log order by id")).toEqual([
      { actor: "ann", action: "source.create", target: "shop", details: { revision: 1 } },
      {
        actor: "ann",
        action: "source.update",
        target: "shop",
        details: { revision: 2, changes: changed.changes },
      },
    ]);
  });

  test("hides an endpoint that is no longer defined, and brings it back under the same id", async () => {
    const both = definitionWith({ default: true }, {});
    both.endpoints["returns"] = { ...ORDERS, path: "/returns" };
    await apply(both);
    const before = await endpointRows();
    await apply(definitionWith({ default: true }));
    expect((await endpointRows()).map(({ removed }) => removed)).toEqual([false, true]);
    expect(Object.keys((await registry().get("shop")).definition.endpoints)).toEqual(["orders"]);
    await apply(both);
    expect(await endpointRows()).toEqual(before);
    expect((await registry().get("shop")).definition).toEqual(normalised(both));
  });

  test("keeps the version of a credential, and forgets one that is no longer defined", async () => {
    await apply(definitionWith({}, { credentials: { key: { env: "KEY" }, old: { env: "OLD" } } }));
    await database.query("update harvest.reg_prov_credential set version = 7");
    await apply(definitionWith({}, { credentials: { key: { secret: "KEY" } } }));
    expect(await database.query("select credential_name, kind, version from harvest.reg_prov_credential")).toEqual([
      { credential_name: "key", kind: "secret", version: 7 },
    ]);
  });

  test("keeps the next fire and the pause of a schedule unless its times change", async () => {
    const nextAt = async () =>
      (await database.query<{ next_at: Date }>("select next_at from harvest.ing_schedule"))[0]?.next_at.toISOString();
    const withSchedule = (fields: object) => definitionWith({}, { schedules: { daily: { ...schedule, ...fields } } });
    await apply(withSchedule({}));
    expect(await nextAt()).toBe("2026-01-02T03:00:00.000Z");
    await database.query("update harvest.ing_schedule set paused_at = now()");
    now += 7 * 86_400_000;
    await apply(withSchedule({ priority: 5 }));
    expect(await nextAt()).toBe("2026-01-02T03:00:00.000Z");
    await apply(withSchedule({ timeZone: "Europe/Berlin" }));
    expect(await nextAt()).toBe("2026-01-09T02:00:00.000Z");
    expect(await database.query("select paused_at is not null as paused from harvest.ing_schedule")).toEqual([
      { paused: true },
    ]);
    await apply(definitionWith());
    expect(await database.query("select from harvest.ing_schedule")).toEqual([]);
  });

  test("can point a source elsewhere, until it is applied without", async () => {
    await apply(definitionWith());
    const pointed = await apply(definitionWith(), "http://localhost:8080");
    expect(pointed).toMatchObject({
      outcome: "changed",
      revision: 2,
      baseUrl: "http://localhost:8080",
      changes: [{ field: "baseUrlOverride", from: null, to: "http://localhost:8080" }],
    });
    expect(await apply(definitionWith(), "http://localhost:8080")).toMatchObject({ outcome: "unchanged" });
    const source = await registry().get("shop");
    expect(source).toMatchObject({
      baseUrlOverride: "http://localhost:8080",
      definition: { baseUrl: "https://api.example.org" },
    });
    expect((await registry().compile(source, "orders", "HARVEST", {})).snapshot.spec.http.baseUrl).toBe(
      "http://localhost:8080",
    );
    expect(await apply(definitionWith())).toMatchObject({
      baseUrl: "https://api.example.org",
      changes: [{ field: "baseUrlOverride", from: "http://localhost:8080", to: null }],
    });
  });

  test("two at once do not mix: each sees what the other has written, or nothing", async () => {
    const variants = Array.from({ length: 8 }, (_, index) => {
      const definition = definitionWith({ default: true }, { description: `variant ${index}` });
      definition.endpoints[`only-${index}`] = { ...ORDERS, path: `/${index}` };
      return definition;
    });
    const applied = await Promise.all(variants.map((definition) => apply(definition)));
    expect(applied.map(({ revision }) => revision).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(applied.filter(({ outcome }) => outcome === "created")).toHaveLength(1);
    const last = variants[applied.findIndex(({ revision }) => revision === 8)] as Definition;
    expect((await registry().get("shop")).definition).toEqual(normalised(last));
    expect(await revisions()).toEqual([8]);
  });

  test("does not let two sources land in one table", async () => {
    const landing = { landing: { table: "LAKE_ORDERS" } };
    await apply(definitionWith(landing));
    const other = definitionWith({}, { source: "market", defaults: { landing: { table: "Lake_Orders" } } });
    await expect(apply(other)).rejects.toMatchObject({
      code: "DEFINITION_INVALID",
      details: {
        problems: [{ reason: "The source shop lands in Lake_Orders already. A source has tables of its own." }],
      },
    });
    expect(await apply(definitionWith({ ...landing, path: "/v2" }))).toMatchObject({ outcome: "changed" });
  });
});

describe("deleting a source", () => {
  test("removes everything that its definition wrote", async () => {
    await apply(
      definitionWith(
        { params: [{ name: "q", location: "QUERY", required: false }] },
        { schedules: { daily: schedule } },
      ),
    );
    expect(await registry().remove("shop", actor)).toMatchObject({ source: "shop", revision: 1 });
    for (const table of [
      "reg_provenance",
      "reg_prov_endpoint_def",
      "reg_prov_http_cfg",
      "reg_expr_field_dict",
      "reg_prov_api_param_map",
      "ing_schedule",
    ]) {
      expect(await database.query(`select from harvest.${table}`), table).toEqual([]);
    }
    await expect(registry().remove("shop", actor)).rejects.toMatchObject({ code: "SOURCE_NOT_FOUND" });
  });

  test("is refused once it has a plan, also of an endpoint that was removed", async () => {
    const both = definitionWith({ default: true });
    both.endpoints["returns"] = { ...ORDERS, path: "/returns" };
    await apply(both);
    await plan((await registry().get("shop")).endpointIds.get("returns") as number);
    await apply(definitionWith({ default: true }));
    await expect(registry().remove("shop", actor)).rejects.toMatchObject({ code: "SOURCE_IN_USE" });
    expect(await registry().get("shop")).toMatchObject({ revision: 2 });
  });
});
