import { expect, test } from "vitest";
import { statements } from "./memory-graph.fixture.ts";

/** `(n:Knowledge {tenantId: $tenantId, id: id})`, `(t)`: each node of a pattern. */
const NODE = /\((\w+)(:\w+)?\s*(\{[^}]*\})?\)/g;

/** Nodes that a statement names for the first time without saying of which tenant they are. */
function strangers(cypher: string): string[] {
  const known = new Set<string>();
  const patterns = cypher.split("\n").filter((line) => /^\s*(MATCH|OPTIONAL MATCH|MERGE|CREATE)\b/.test(line));
  return patterns.flatMap((line) =>
    [...line.matchAll(NODE)].flatMap(([text, name = "", label, properties = ""]) => {
      const isOfTenant =
        known.has(name) || properties.includes(label === ":Tenant" ? "id: $tenantId" : "tenantId: $tenantId");
      known.add(name);
      return isOfTenant ? [] : [text];
    }),
  );
}

test("every node in every statement is named with its tenant", () => {
  expect(statements.length).toBeGreaterThan(40);
  expect(statements.filter((cypher) => strangers(cypher).length > 0)).toEqual([]);
  // Every pattern was looked at: none stands in a line that does not begin with its clause.
  for (const cypher of statements) expect(cypher).not.toMatch(/^(?!\s*(MATCH|MERGE)\b).*\(\w+:\w+/m);
});

test("a node without its tenant is found out, at either end of an edge", () => {
  const known = "MATCH (a:Knowledge {tenantId: $tenantId, id: row.src})";
  expect(strangers("MATCH (a:Knowledge {id: row.src})")).toEqual(["(a:Knowledge {id: row.src})"]);
  expect(strangers(`${known}-[r:X]->(b:Knowledge {id: row.dst})`)).toEqual(["(b:Knowledge {id: row.dst})"]);
  expect(strangers(`${known}\nMERGE (a)-[:X]->(b)`)).toEqual(["(b)"]);
  expect(strangers("MATCH (t:Tenant {id: row.tenantId})")).toHaveLength(1);
});
