import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ApiError } from "../../kernel/errors.ts";
import { parseEvent } from "../ingest/event.ts";
import { type Credential, introductionOf, resolveTenant, tenantIdOf } from "./tenancy.ts";

interface Shape {
  job?: string;
  jobNamespace?: string;
  inputs?: { namespace?: string; gravitino?: unknown }[];
  outputs?: { namespace?: string; gravitino?: unknown }[];
}

const datasets = (side: Shape["inputs"] = []) =>
  side.map(({ namespace = "postgres://db:5432", gravitino }) => ({
    namespace,
    name: "sales.orders",
    facets: gravitino === undefined ? {} : { gravitino },
  }));

const event = ({ job = "gravitino.create_table", jobNamespace = "spark", inputs, outputs }: Shape) =>
  parseEvent({
    eventTime: "2026-01-01T00:00:00Z",
    run: { runId: "0190a000-0000-7000-8000-000000000000" },
    job: { namespace: jobNamespace, name: job },
    inputs: datasets(inputs),
    outputs: datasets(outputs),
  });

const credential = (source: Credential["source"], tenantId: string | null = null): Credential => ({
  source,
  tenantId,
  place: "the key",
});

function outcome(shape: Shape, who: Credential) {
  try {
    return resolveTenant(event(shape), who);
  } catch (error) {
    return error as ApiError;
  }
}

describe("an event of Gravitino", () => {
  test.each<[string, Shape]>([
    ["its facet", { outputs: [{ gravitino: { tenantId: 7 } }] }],
    ["its facet, of an input", { inputs: [{ gravitino: { tenantId: 7 } }] }],
    ["a facet that writes it as text", { outputs: [{ gravitino: { tenantId: "7" } }] }],
    ["the second dataset's facet", { outputs: [{}, { gravitino: { tenantId: 7 } }] }],
    ["the job's namespace", { jobNamespace: "gravitino://tenant/7" }],
    ["the job's namespace, with a metalake", { jobNamespace: "gravitino://tenant/7/lake" }],
    ["a dataset's namespace", { outputs: [{ namespace: "gravitino://tenant/7/lake/hive" }] }],
    ["leading zeros", { jobNamespace: "gravitino://tenant/007" }],
    [
      "all of them together",
      {
        jobNamespace: "gravitino://tenant/7",
        outputs: [{ namespace: "gravitino://tenant/7/lake/hive", gravitino: { tenantId: 7 } }],
      },
    ],
  ])("belongs to the tenant of %s", (_, shape) => {
    for (const who of [credential("GRAVITINO"), credential(null), credential("GRAVITINO", "7")]) {
      expect(outcome(shape, who)).toEqual({ tenantId: "7", source: "GRAVITINO" });
    }
  });

  test("belongs to the key's tenant if it names none", () => {
    expect(outcome({}, credential("GRAVITINO", "9"))).toEqual({ tenantId: "9", source: "GRAVITINO" });
  });

  test.each([
    "gravitino",
    "gravitino://lake/hive",
    "gravitino://tenant",
    "gravitino://tenant/hive",
    "gravitino://tenant/7x/y",
  ])("names no tenant by %s: a metalake may be named `tenant`", (namespace) => {
    expect(outcome({ jobNamespace: namespace, outputs: [{ namespace }] }, credential("GRAVITINO"))).toMatchObject({
      status: 403,
      code: "TENANT_UNRESOLVED",
    });
  });

  test.each([[null], [undefined]])("whose facet's tenantId is %s has no tenant there", (tenantId) => {
    const shape = { jobNamespace: "gravitino://tenant/7", outputs: [{ gravitino: { tenantId } }] };
    expect(outcome(shape, credential("GRAVITINO"))).toMatchObject({ tenantId: "7" });
  });

  test.each([["seven"], [-1], [1.5], [1e300], [true], [{}], [[7]], ["99999999999999999999"], [""]])(
    "whose facet's tenantId is %j is refused, though another place names a tenant",
    (tenantId) => {
      const shape = { jobNamespace: "gravitino://tenant/7", outputs: [{ gravitino: { tenantId } }] };
      expect(outcome(shape, credential("GRAVITINO"))).toMatchObject({
        code: "TENANT_UNRESOLVED",
        message:
          "The tenant of the event cannot be determined: /outputs/0/facets/gravitino/tenantId holds no tenant id. " +
          "A tenant id is a whole number.",
      });
    },
  );
});

describe("signals that disagree", () => {
  test("are named with their places", () => {
    const shape = {
      jobNamespace: "gravitino://tenant/7",
      outputs: [{ gravitino: { tenantId: 8 } }, { namespace: "gravitino://tenant/7/lake/hive" }],
    };
    expect(outcome(shape, credential("GRAVITINO", "9"))).toMatchObject({
      status: 403,
      code: "TENANT_CONFLICT",
      message:
        "An event belongs to one tenant, but this one is said to be of several: " +
        "8 by /outputs/0/facets/gravitino/tenantId, 7 by /job/namespace, 9 by the key.",
      details: {
        signals: [
          { tenantId: 8, place: "/outputs/0/facets/gravitino/tenantId" },
          { tenantId: 7, place: "/job/namespace" },
          { tenantId: 9, place: "the key" },
        ],
      },
    });
  });

  test("are not all told where an event names thousands", () => {
    const inputs = Array.from({ length: 2_000 }, (_, id) => ({ namespace: `gravitino://tenant/${id}/lake` }));
    const refused = outcome({ inputs }, credential("GRAVITINO")) as ApiError;
    expect(refused.message).toMatch(/7 by \/inputs\/7\/namespace, and 1992 more\.$/);
    expect(refused.details["signals"]).toHaveLength(8);
  });

  test("of a dataset event are found in its dataset", () => {
    const dataset = { namespace: "gravitino://tenant/7/lake", name: "t", facets: { gravitino: { tenantId: 8 } } };
    const parsed = parseEvent({ eventTime: "2026-01-01T00:00:00Z", dataset });
    expect(() => resolveTenant(parsed, credential("GRAVITINO"))).toThrow(
      "8 by /dataset/facets/gravitino/tenantId, 7 by /dataset/namespace",
    );
  });
});

describe("an event of a compute engine", () => {
  test("belongs to the key's tenant", () => {
    const shape = { job: "daily.load", outputs: [{}] };
    for (const source of ["COMPUTE_ENGINE", null] as const) {
      expect(outcome(shape, credential(source, "7"))).toEqual({ tenantId: "7", source: "COMPUTE_ENGINE" });
    }
  });

  test("is refused without one, even if it names a tenant itself", () => {
    const shape = { job: "daily.load", outputs: [{ namespace: "gravitino://tenant/7/lake/hive" }] };
    for (const source of ["COMPUTE_ENGINE", null] as const) {
      expect(outcome(shape, credential(source))).toMatchObject({
        code: "TENANT_UNRESOLVED",
        message: expect.stringContaining("Send with a key that has a tenantId."),
      });
    }
  });

  test("may not name another tenant's table", () => {
    const shape = { job: "daily.load", outputs: [{ namespace: "gravitino://tenant/8/lake/hive" }] };
    expect(outcome(shape, credential("COMPUTE_ENGINE", "7"))).toMatchObject({ code: "TENANT_CONFLICT" });
  });

  test("is what a key of compute engines sends, though it be named like an operation of Gravitino", () => {
    const shape = { jobNamespace: "gravitino://tenant/7" };
    expect(outcome(shape, credential("COMPUTE_ENGINE", "7"))).toEqual({ tenantId: "7", source: "COMPUTE_ENGINE" });
  });
});

test("every combination of signals ends as the table says", () => {
  const signal = fc.option(fc.constantFrom("7", "8"), { nil: null, freq: 2 });
  const source = fc.constantFrom(null, "GRAVITINO" as const, "COMPUTE_ENGINE" as const);
  const seen = new Set<string>();
  fc.assert(
    fc.property(signal, signal, signal, signal, source, fc.boolean(), (facet, job, dataset, key, given, isMetadata) => {
      const shape: Shape = {
        job: isMetadata ? "gravitino.alter_table" : "etl.daily",
        jobNamespace: job === null ? "spark" : `gravitino://tenant/${job}`,
        inputs: dataset === null ? [{}] : [{ namespace: `gravitino://tenant/${dataset}/lake` }],
        outputs: facet === null ? [{}] : [{ gravitino: { tenantId: Number(facet) } }],
      };
      const told = [facet, job, dataset].filter((one) => one !== null);
      const named = new Set([...told, ...(key === null ? [] : [key])]);
      const isGravitino = given === null ? told.length > 0 && isMetadata : given === "GRAVITINO";
      const expected =
        named.size > 1
          ? "TENANT_CONFLICT"
          : named.size === 0 || (!isGravitino && key === null)
            ? "TENANT_UNRESOLVED"
            : `${[...named].join()} ${isGravitino ? "GRAVITINO" : "COMPUTE_ENGINE"}`;
      const got = outcome(shape, credential(given, key));
      expect(got instanceof ApiError ? got.code : `${got.tenantId} ${got.source}`).toBe(expected);
      seen.add(expected);
    }),
    { numRuns: 2_000 },
  );
  expect(seen.size).toBe(6); // Both refusals, and both tenants from both sources.
});

test("a tenant's names come from the first facet that has them", () => {
  const outputs = [
    { gravitino: { tenantCode: "", tenantName: 5 } },
    { gravitino: { tenantCode: "acme", tenantName: "Acme" } },
  ];
  expect(introductionOf(event({ outputs }))).toEqual({ code: "acme", name: "Acme" });
  expect(introductionOf(event({ outputs: [{ gravitino: "nonsense" }] }))).toEqual({ code: undefined, name: undefined });
});

test.each([
  [7, "7"],
  ["0007", "7"],
  [0, "0"],
  [Number.MAX_SAFE_INTEGER, "9007199254740991"],
  ["9007199254740993", undefined],
  [" 7", undefined],
  ["7.0", undefined],
  ["", undefined],
  [null, undefined],
])("%j as a tenant id is %j", (value, id) => {
  expect(tenantIdOf(value)).toBe(id);
});
