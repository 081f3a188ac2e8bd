import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { definitions, definitionWith } from "./definition.fixture.ts";
import type { Definition } from "./definition.ts";
import { POLICY_FIELDS, POLICY_SECTIONS } from "./policy.ts";
import { defaultEndpoint, definitionOf, normalised, partsOf } from "./rows.ts";
import { CFG_TABLE_NAMES, cfgTableOf } from "./tables.ts";

test("the normal form of a definition says the same: only what is empty is left out", () => {
  fc.assert(
    fc.property(definitions, (definition) => {
      const normal = normalised(definition);
      expect(normalised(normal)).toEqual(normal);
      expect(withoutEmpty(normal)).toEqual(JSON.parse(JSON.stringify(withoutEmpty(definition))));
    }),
  );
});

function withoutEmpty({ description, credentials, defaults, endpoints, schedules, ...rest }: Definition) {
  const usual = defaultEndpoint({ endpoints });
  const orEmpty = <Value extends object>(value: Value | undefined) => value ?? {};
  return {
    ...rest,
    description: description ?? "",
    credentials: orEmpty(credentials),
    defaults: orEmpty(defaults),
    endpoints: Object.fromEntries(
      Object.entries(endpoints).map(([name, { overrides, ...endpoint }]) => [
        name,
        { ...endpoint, overrides: orEmpty(overrides) },
      ]),
    ),
    schedules: Object.fromEntries(
      Object.entries(schedules ?? {}).map(([name, { endpoint = usual, params, ...schedule }]) => [
        name,
        { ...schedule, endpoint, params: orEmpty(params) },
      ]),
    ),
  };
}

describe("the rows of an endpoint", () => {
  test("hold each section in its table", () => {
    const { endpoints } = partsOf(
      definitionWith({
        http: { readTimeoutMs: 5_000 },
        auth: { type: "NONE" },
        expr: { allowedFunctions: ["size"], nullPolicy: "empty" },
        redact: true,
        params: [{ name: "q", location: "QUERY", required: true }],
      }),
      null,
    );
    expect(endpoints[0]).toMatchObject({
      cfg: {
        reg_prov_http_cfg: { http: { readTimeoutMs: 5_000 }, auth: { type: "NONE" } },
        reg_prov_expr_capability: { expr: { allowedFunctions: ["size"] } },
        reg_prov_expr_render_rule: { expr: { nullPolicy: "empty" }, redact: true },
        reg_prov_retry_cfg: null,
      },
      params: [{ param_name: "q", cfg: { location: "QUERY", required: true } }],
    });
  });

  test.each([
    ["a list of parameters without items", { params: [] }],
    ["a section without fields", { http: {}, expr: {} }],
  ])("keep %s, which replaces what a lower layer has", (_, policy) => {
    const definition = definitionWith(policy);
    expect(normalised(definition).endpoints["orders"]).toEqual(definition.endpoints["orders"]);
  });

  test("have a place for every section and field of a policy", () => {
    for (const name of [...Object.keys(POLICY_SECTIONS), ...Object.keys(POLICY_FIELDS)]) {
      expect([...CFG_TABLE_NAMES, "reg_prov_api_param_map"]).toContain(cfgTableOf([name]));
    }
  });
});

describe("the default endpoint", () => {
  const search = { role: "SEARCH", method: "GET", path: "/", default: false, requiresAuth: false } as const;

  test("is the one that says so, or the only one to search", () => {
    const detail = { ...search, role: "DETAIL" } as const;
    expect(defaultEndpoint({ endpoints: { a: search, b: { ...search, default: true } } })).toBe("b");
    expect(defaultEndpoint({ endpoints: { a: detail, b: search } })).toBe("b");
    expect(defaultEndpoint({ endpoints: { a: search, b: search } })).toBeUndefined();
  });
});

test("a schedule names the default endpoint where the definition names none", () => {
  const definition = definitionWith(
    {},
    { schedules: { daily: { operation: "HARVEST", cron: "@daily", timeZone: "UTC" } } },
  );
  const { source, ...parts } = partsOf(definition, null);
  expect(definitionOf({ ...source, ...parts }).schedules).toEqual({
    daily: { endpoint: "orders", operation: "HARVEST", cron: "@daily", timeZone: "UTC" },
  });
});
