import { describe, expect, test } from "vitest";
import { POLICY_FIELDS, POLICY_SECTIONS } from "../definition/policy.ts";
import { compiledOf, draft } from "./definition.fixture.ts";
import { mergeLayers, PLATFORM } from "./layers.ts";
import { tableOf } from "./problem.ts";

describe("layers", () => {
  test("override each other from the platform to the endpoint's own", () => {
    const size = (pageSize: number) => ({ pagination: { pageSize } });
    const layers = { provenance: size(1), endpoint: size(2), cfg: size(3) };
    const merged = (...names: (keyof typeof layers)[]) => {
      const { policy, origins } = mergeLayers(Object.fromEntries(names.map((name) => [name, layers[name]])));
      return [policy.pagination.pageSize, origins["pagination.pageSize"]];
    };
    expect(merged()).toEqual([100, "platform"]);
    expect(merged("provenance")).toEqual([1, "provenance"]);
    expect(merged("endpoint", "provenance")).toEqual([2, "endpoint"]);
    expect(merged("cfg", "endpoint", "provenance")).toEqual([3, "cfg"]);
  });

  test("merge objects key by key, and name the layer of each value", () => {
    const { policy, origins } = mergeLayers({
      provenance: { http: { query: { a: "1", b: "1" }, headers: { x: "1" } } },
      cfg: { http: { query: { b: "2", c: "2" } } },
    });
    expect(policy.http.query).toEqual({ a: "1", b: "2", c: "2" });
    expect(origins).toMatchObject({
      "http.query.a": "provenance",
      "http.query.b": "cfg",
      "http.query.c": "cfg",
      "http.headers.x": "provenance",
      "http.redirects": "platform",
    });
  });

  test("replace lists as a whole", () => {
    const { policy, origins } = mergeLayers({
      provenance: { params: [param("a"), param("b")] },
      cfg: { params: [param("c")] },
    });
    expect(policy.params).toEqual([param("c")]);
    expect(origins["params"]).toBe("cfg");
  });

  test("forget the origins of what they replace", () => {
    const { policy, origins } = mergeLayers({
      provenance: { http: { json: { a: { b: 1 } } } },
      cfg: { http: { json: { a: 2 } } },
    });
    expect(policy.http.json).toEqual({ a: 2 });
    expect(origins).toMatchObject({ "http.json.a": "cfg" });
    expect(origins).not.toHaveProperty(["http.json.a.b"]);
  });

  test("do not share anything with the platform's", () => {
    const { policy } = mergeLayers({});
    policy.retry.retryableStatus!.push(1);
    expect(PLATFORM.retry.retryableStatus).not.toContain(1);
  });

  test("take a key like __proto__ for a key", () => {
    const query = JSON.parse('{"__proto__": "x"}') as Record<string, string>;
    const { policy } = mergeLayers({ cfg: { http: { query } } });
    expect(Object.keys(policy.http.query!)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  test("make a window and a landing only where one is declared", () => {
    expect(mergeLayers({}).policy).not.toHaveProperty("window");
    expect(mergeLayers({ provenance: { window: { granularity: "P1D" } } }).policy.window).toMatchObject({
      granularity: "P1D",
      safetyLag: "PT10M",
      timezone: "UTC",
    });
    expect(mergeLayers({ cfg: { landing: { table: "t" } } }).policy.landing).toEqual({ table: "t", grain: "day" });
  });

  test("give every merged value of a snapshot an origin", () => {
    const { origins } = compiledOf(draft({ "defaults.retry.maxAttempts": 7 }));
    expect(origins).toMatchObject({
      "retry.maxAttempts": "provenance",
      "retry.capMs": "platform",
      "pagination.pageSize": "cfg",
      "window.safetyLag": "platform",
      bodies: "platform",
      outputFields: "cfg",
    });
  });
});

test("every section and field of a policy has a table of its own layer", () => {
  const names = [...Object.keys(POLICY_SECTIONS), ...Object.keys(POLICY_FIELDS)].filter((name) => name !== "expr");
  for (const name of [...names, "expr.allowedFunctions", "expr.nullPolicy"]) {
    expect(tableOf(name, {}), name).toMatch(/^reg_(prov_(?!endpoint_def)|expr_)/);
  }
});

function param(name: string) {
  return { name, location: "QUERY" as const, required: false };
}
