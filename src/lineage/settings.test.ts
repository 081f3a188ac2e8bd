import { describe, expect, test } from "vitest";
import { parseConfigText } from "../kernel/config/file.ts";
import { checkSections } from "../kernel/config/sections.ts";
import { LineageSettings } from "./settings.ts";

function read(text: string) {
  const file = parseConfigText("millrace.yaml", text);
  if ("problems" in file) throw new Error(file.problems.join());
  return checkSections(file, { lineage: LineageSettings }, []);
}

test("without settings there are defaults, and nothing that has to be chosen", () => {
  expect(read("")).toMatchObject({
    sections: {
      lineage: {
        eventBytesMax: 16_777_216,
        createTenants: false,
        clockToleranceSeconds: 300,
        futureToleranceSeconds: 86_400,
        keepDays: 90,
        own: { enabled: true, id: 0, code: "millrace", name: "Millrace" },
        tasks: {},
      },
    },
  });
  for (const name of ["gateway", "neo4j"]) expect(read("")).not.toHaveProperty(`sections.lineage.${name}`);
});

test("a gateway has the claims and keys that it is given", () => {
  const text = `lineage:
  own: { id: 1, code: millrace, name: Millrace itself }
  gateway:
    issuer: the-gateway
    audience: millrace
    jwks: { keys: [{ kty: OKP, crv: Ed25519, x: abc }] }
    algorithms: [EdDSA]`;
  expect(read(text)).toMatchObject({
    sections: {
      lineage: {
        own: { id: 1, code: "millrace", name: "Millrace itself" },
        gateway: { tenantClaim: "tenant_id", sourceClaim: "source", jwks: { keys: [{ x: "abc" }] } },
      },
    },
  });
});

describe("what is wrong is told", () => {
  test.each([
    ["lineage: { eventBytesMax: 67108865 }", "eventBytesMax"],
    ["lineage: { createTenant: true }", "Did you mean `createTenants`?"],
    ["lineage: { own: { id: -1 } }", "lineage.own.id"],
    ["lineage: { gateway: { issuer: x, audience: y, secret: plain-text } }", "lineage.gateway.secret"],
    ["lineage: { gateway: { issuer: x, audience: y, algorithms: [none] } }", "lineage.gateway.algorithms"],
    ["lineage: { gateway: { issuer: x } }", "audience"],
  ])("%s", (text, complaint) => {
    const { problems } = read(text) as { problems: string[] };
    expect(problems.join()).toContain(complaint);
  });
});
