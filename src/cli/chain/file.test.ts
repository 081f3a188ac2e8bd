/** The file of a chain: its fields, and the places of its problems. */
import { describe, expect, test } from "vitest";
import { parseChainFile } from "./file.ts";

const DAILY = `name: daily
description: Orders
nodes:
  - id: extract
    type: http
    cfg:
      url: "http://x"
  - { id: load, type: sqll, dependsOn: [extract] }
`;

test("has its nodes at the top, or a whole DAG, as YAML or JSON", () => {
  const { name, settings, enabled, dag } = parseChainFile("daily.yaml", DAILY);
  expect({ name, settings, enabled }).toEqual({
    name: "daily",
    settings: { description: "Orders" },
    enabled: undefined,
  });
  expect(dag).toMatchObject({ nodes: [{ id: "extract" }, { id: "load" }] });
  const json = parseChainFile("x.json", '{"name":"x","enabled":false,"maxActiveRuns":2,"dag":{"nodes":[],"other":1}}');
  expect(json).toMatchObject({ enabled: false, settings: { maxActiveRuns: 2 }, dag: { nodes: [], other: 1 } });
});

describe("points to the place of a problem", () => {
  const { complaint } = parseChainFile("daily.yaml", DAILY);

  test.each([
    [{ path: "nodes[0].cfg.url", nodeId: "extract", message: "bad URL" }, "daily.yaml:7:7: extract, cfg.url: bad URL"],
    [{ path: "nodes[1].type", nodeId: "load", message: "no type" }, "daily.yaml:8:17: load, type: no type"],
    [{ path: "nodes[1].cfg.sql", nodeId: "load", message: "missing" }, "daily.yaml:8:5: load, cfg.sql: missing"],
    [{ path: "nodes[1]", nodeId: "load", message: "no" }, "daily.yaml:8:5: load: no"],
    [{ path: "nodes[1].id", message: "missing" }, "daily.yaml:8:7: nodes[1].id: missing"],
    [{ path: "nodes", message: "dag must have nodes" }, "daily.yaml:3:1: nodes: dag must have nodes"],
    [{ path: "", message: "too large" }, "daily.yaml:1:1: too large"],
  ])("%j", (problem, sentence) => {
    expect(complaint(problem)).toBe(sentence);
  });

  test("below `dag` too", () => {
    const { complaint: below } = parseChainFile("x.yaml", "name: x\ndag:\n  nodes:\n    - id: a\n      type: nop\n");
    expect(below({ path: "nodes[0].type", nodeId: "a", message: "no" })).toBe("x.yaml:5:7: a, type: no");
  });
});

test.each([
  ["name: [", /^f\.yaml:1:\d+: this is not valid YAML/],
  ["nodes: []", /^f\.yaml:1:1: the chain has no name/],
  ["name: 7\nnodes: []", /^f\.yaml:1:1: the chain has no name/],
  ["", /^f\.yaml:1:1: the chain has no name/],
  ["- name: x", /^f\.yaml:1:1: /],
  ["name: x\nnods: []", /^f\.yaml:2:1: `nods` is not a field of a chain\. Did you mean `nodes`\?$/],
  ["name: x", /^f\.yaml:1:1: a chain has either `nodes`/],
  ["name: x\nnodes: []\ndag: {}", /^f\.yaml:2:1: a chain has either `nodes`/],
  ["name: x\nenabled: 1\nnodes: []", /^f\.yaml:2:1: `enabled` is true or false\.$/],
  ["name: x\nnodes:\n  - timeoutMs: .inf", /^f\.yaml: Cannot write .*timeoutMs/],
])("%j is refused with its place", (text, sentence) => {
  expect(() => parseChainFile("f.yaml", text)).toThrow(sentence);
});
