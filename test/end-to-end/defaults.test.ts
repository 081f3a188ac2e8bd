/** Every default of every schema is applied: in the bodies and queries of routes, in settings and in the `cfg` of nodes. */
import { readFile } from "node:fs/promises";
import { Ajv } from "ajv";
import { Type } from "typebox";
import { describe, expect, test } from "vitest";
import { chain } from "../../src/chains/types/chain.ts";
import { map } from "../../src/chains/types/map.ts";
import { createRegistry } from "../../src/chains/types/registry.ts";
import { sleep } from "../../src/chains/types/sleep.ts";
import { checkSections } from "../../src/kernel/config/sections.ts";
import { compileWithDefaults } from "../../src/kernel/json/defaults.ts";
import { loadModules } from "../../src/kernel/module.ts";
import { MODULES } from "../../src/modules.ts";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";
import { operationsOf, readDocument, required, type Schema } from "./operations.ts";

const database = useDatabase();
const millrace = useMillrace(database);

/** A value that lacks one field with a default, where it is and what it must become. */
interface Gap {
  value: unknown;
  path: (string | number)[];
  filled: unknown;
}

function gapsOf(schema: Schema): Gap[] {
  const { properties = {}, anyOf = [], items, additionalProperties, patternProperties } = schema as Schema & Maps;
  const inMaps = [additionalProperties, ...Object.values(patternProperties ?? {})].filter(
    (part) => typeof part === "object",
  );
  return [
    ...anyOf.flatMap(gapsOf),
    ...(items ? gapsOf(items).map(({ value, path, filled }) => ({ value: [value], path: [0, ...path], filled })) : []),
    ...inMaps.flatMap((part) =>
      gapsOf(part).map(({ value, path, filled }) => ({ value: { x: value }, path: ["x", ...path], filled })),
    ),
    ...Object.entries(properties).flatMap(([name, field]) => {
      const own = field.default === undefined ? [] : [{ value: undefined, path: [], filled: field.default }];
      return [...own, ...gapsOf(field)].map(({ value, path, filled }) => ({
        value: { ...required(schema), [name]: value },
        path: [name, ...path],
        filled,
      }));
    }),
  ];
}
interface Maps {
  additionalProperties?: Schema | boolean;
  patternProperties?: Record<string, Schema>;
}

const at = (value: unknown, path: Gap["path"]): unknown =>
  path.reduce<unknown>((part, step) => (part as Record<string | number, unknown>)[step], value);

/** A default that is an object is itself completed. */
function expectFilled(value: unknown, { path, filled }: Gap, where: string): void {
  const found = at(value, path);
  const place = `${where}: ${path.join(".")} in ${JSON.stringify(value)}`;
  if (typeof filled === "object" && filled !== null && !Array.isArray(filled))
    expect(found, place).toMatchObject(filled);
  else expect(found, place).toEqual(filled);
}

describe("every default is applied", () => {
  test("in the bodies and queries of all routes", async () => {
    const compile = millrace.app.http.validatorCompiler;
    if (!compile) throw new Error("the server has no validator");
    let count = 0;
    for (const { method, path, body, parameters } of operationsOf(await readDocument(millrace.url))) {
      const inQuery = parameters.filter((parameter) => parameter.in === "query");
      const query: Schema = {
        type: "object",
        properties: Object.fromEntries(inQuery.map(({ name, schema }) => [name, schema])),
        required: inQuery.filter((parameter) => parameter.required).map(({ name }) => name),
      };
      for (const [httpPart, schema] of [
        ["body", body],
        ["querystring", query],
      ] as const) {
        for (const gap of schema ? gapsOf(schema) : []) {
          const where = `${httpPart} of ${method} ${path}`;
          const outcome: unknown = compile({ schema: schema as object, httpPart, method, url: path } as never)(
            gap.value,
          );
          expect(outcome, `${where}: ${JSON.stringify(gap.value)}`).toBe(true);
          expectFilled(gap.value, gap, where);
          count += 1;
        }
      }
    }
    expect(count).toBeGreaterThan(60);
  });

  test("in the settings of all modules", async () => {
    const modules = await loadModules(MODULES);
    const schemas = Object.fromEntries(modules.map(({ name, section }) => [name, section]));
    let count = 0;
    for (const { name, section } of modules) {
      for (const gap of gapsOf(section as unknown as Schema)) {
        const file = { content: { [name]: gap.value as Record<string, unknown> }, place: () => name };
        const checked = checkSections(file, schemas, []);
        if ("problems" in checked) throw new Error(`${JSON.stringify(gap.value)}: ${checked.problems.join()}`);
        expectFilled(checked.sections[name], gap, name);
        count += 1;
      }
    }
    expect(count).toBeGreaterThan(30);
  });

  test("in sections that are not in the file, as by validation", async () => {
    for (const { name, section } of await loadModules(MODULES)) {
      const empty: Record<string, unknown> = { [name]: {} };
      const validate = compileWithDefaults(
        new Ajv({ useDefaults: true, strict: false }),
        Type.Object({ [name]: section }),
      );
      expect(validate(empty), name).toBe(true);
      const file = { content: {}, place: () => name };
      expect(checkSections(file, { [name]: section }, []), name).toEqual({ sections: empty });
    }
  });

  test("in the cfg of nodes", () => {
    const types = [sleep, chain, map];
    const registry = createRegistry(types);
    for (const type of types) {
      for (const gap of gapsOf(type.cfg as Schema)) {
        const completed = registry.complete(type.type, gap.value);
        if ("problems" in completed) throw new Error(JSON.stringify(completed.problems));
        expectFilled(completed.cfg, gap, type.type);
      }
    }
  });
});

describe("a schedule whose opTime has no offset", () => {
  async function schedule(opTime: object) {
    const dagJson = { nodes: [{ id: "a", type: "noop" }] };
    const { body: chainBody } = await millrace.api.post("/api/v1/chains", {
      name: `c ${JSON.stringify(opTime)}`,
      dagJson,
    });
    const path = `/api/v1/chains/${String(chainBody["chainId"])}/schedules`;
    return { path, made: await millrace.api.post(path, { name: "s", cron: "0 3 * * *", opTime }) };
  }

  test("gets the offset 0, and is read as it was answered", async () => {
    const { path, made } = await schedule({ grain: "day" });
    expect(made).toMatchObject({ status: 200, body: { opTime: { grain: "day", offset: 0 } } });
    const { status, body } = await millrace.api.get<{ items: unknown[] }>(path);
    expect([status, body.items]).toEqual([200, [made.body]]);
    const changed = await millrace.api.put(`${path}/${String(made.body["scheduleId"])}`, {
      name: "s",
      cron: "0 4 * * *",
      opTime: { grain: "month" },
    });
    expect(changed).toMatchObject({ status: 200, body: { opTime: { grain: "month", offset: 0 } } });
  });

  test("cannot be stored by an older process either", async () => {
    const { made } = await schedule({ grain: "hour" });
    const broken = database.query(`update chains.schedule set op_time = '{"grain": "day"}' where schedule_id = $1`, [
      made.body["scheduleId"],
    ]);
    await expect(broken).rejects.toThrow("schedule_op_time");
  });

  test("is repaired if it was stored so", async () => {
    const { path, made } = await schedule({ grain: "day", offset: -2 });
    const id = made.body["scheduleId"];
    await database.query("alter table chains.schedule drop constraint schedule_op_time");
    await database.query(`update chains.schedule set op_time = '{"grain": "day"}' where schedule_id = $1`, [id]);
    const migration = await readFile(new URL("../../sql/000010_schedule_op_time.sql", import.meta.url), "utf8");
    await database.db.exclusive((client) => client.query(migration));
    const repaired = await millrace.api.get<{ items: unknown[] }>(path);
    expect(repaired).toMatchObject({ status: 200, body: { items: [{ opTime: { grain: "day", offset: 0 } }] } });
  });
});
