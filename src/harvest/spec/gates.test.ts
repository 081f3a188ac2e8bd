import { Ajv } from "ajv";
import { expect, test } from "vitest";
import { faultOf, GateDeclaration } from "../../kernel/gate/declaration.ts";
import { COST_MAX } from "../../kernel/gate/permits.ts";
import { compiledOf, draft } from "./definition.fixture.ts";
import { gateKeysOf, gatesOfSnapshot } from "./gates.ts";

const KEYED = {
  "endpoints.list.auth": { type: "API_KEY", location: "QUERY", name: "key", credential: "key", required: false },
  "endpoints.list.rateLimit": { keys: ["books", "books:list"], refillRatePerSec: 2, refillRateWithCredential: 9 },
};

test("requests with a credential have gates of their own where they have a rate of their own", () => {
  const { snapshot } = compiledOf(draft(KEYED));
  const { rateLimit } = snapshot.spec;
  expect(gateKeysOf(rateLimit, false)).toEqual(["books", "books:list"]);
  expect(gateKeysOf(rateLimit, true)).toEqual(["books:key", "books:list:key"]);
  expect(gatesOfSnapshot(snapshot).map(({ key, ratePerSec }) => [key, ratePerSec])).toEqual([
    ["books", 2],
    ["books:list", 2],
    ["books:key", 9],
    ["books:list:key", 9],
  ]);
  const plain = compiledOf(draft()).snapshot;
  expect(gateKeysOf(plain.spec.rateLimit, true)).toEqual(["books"]);
  expect(gatesOfSnapshot(plain)).toHaveLength(1);
});

test("a gate has every limit that the definition declares", () => {
  const rateLimit = {
    refillRatePerSec: 20,
    burstCapacity: 3,
    concurrency: 4,
    warmupSec: 30,
    demoteRate: 5,
    quotas: [{ unit: "requests", window: "P1D", limit: 1_000 }],
  };
  const { snapshot } = compiledOf(draft({ "endpoints.list.rateLimit": rateLimit }));
  expect(gatesOfSnapshot(snapshot)).toEqual([
    {
      key: "books",
      ratePerSec: 20,
      burst: 3,
      concurrency: 4,
      warmupSec: 30,
      cutFactor: 5,
      quotas: [{ unit: "requests", windowSec: 86_400, limit: 1_000 }],
    },
  ]);
});

test("a gate that the list and the details share keeps the limits of both", () => {
  const daily = { unit: "requests", window: "P1D" };
  const rates = {
    "endpoints.ids.rateLimit": {
      keys: ["books"],
      refillRatePerSec: 10,
      burstCapacity: 4,
      concurrency: 2,
      quotas: [{ ...daily, limit: 500 }],
    },
    "endpoints.details.rateLimit": {
      keys: ["books"],
      refillRatePerSec: 3,
      demoteRate: 4,
      quotas: [
        { ...daily, limit: 900 },
        { unit: "credits", window: "PT1H", limit: 7 },
      ],
    },
  };
  const { snapshot } = compiledOf(draft(rates), { endpointName: "ids" });
  expect(gatesOfSnapshot(snapshot)).toEqual([
    {
      key: "books",
      ratePerSec: 3,
      burst: 1,
      concurrency: 2,
      warmupSec: 0,
      cutFactor: 4,
      quotas: [
        { unit: "requests", windowSec: 86_400, limit: 500 },
        { unit: "credits", windowSec: 3_600, limit: 7 },
      ],
    },
  ]);
});

test.each([
  {
    keys: ["k".repeat(196)],
    refillRatePerSec: 0.00001,
    refillRateWithCredential: 0.00001,
    demoteRate: 1.01,
    quotas: [{ unit: "requests", window: "PT1S", limit: 1 }],
  },
  {
    keys: ["!"],
    refillRatePerSec: 10_000,
    refillRateWithCredential: 10_000,
    providerRatePerSec: 10_000,
    burstCapacity: 10_000,
    concurrency: 1_000,
    warmupSec: 3_600,
    demoteRate: 100,
    cost: 2_500,
    quotas: [{ unit: "usd_micros", window: "P367D", limit: 1_000_000_000 }],
  },
])("the gate accepts the least and the most that a definition may declare", (rateLimit) => {
  const { snapshot } = compiledOf(
    draft({ ...KEYED, "endpoints.list.rateLimit": rateLimit, "endpoints.list.http.redirects": 3 }),
  );
  const isValid = new Ajv().compile(GateDeclaration);
  const gates = gatesOfSnapshot(snapshot);
  expect(gates).toHaveLength(2);
  for (const gate of gates) {
    isValid(gate);
    expect(isValid.errors).toBeNull();
    expect(faultOf(gate)).toBeUndefined();
  }
  const {
    rateLimit: { cost },
    http,
  } = snapshot.spec;
  expect(cost * (1 + http.redirects)).toBeLessThanOrEqual(COST_MAX);
});
