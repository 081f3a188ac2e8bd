import { expect, test } from "vitest";
import { compiledOf, draft } from "../spec/definition.fixture.ts";
import type { Snapshot } from "../spec/snapshot.ts";
import { createCompiledSources } from "./compiled.ts";

test("a snapshot is read and compiled once, and one that cannot be used says why", async () => {
  const { snapshot } = compiledOf(draft());
  const broken = { ...snapshot, spec: { ...snapshot.spec, classifier: [{ when: "((", action: "FAIL", reason: "" }] } };
  const read: string[][] = [];
  const compiled = createCompiledSources(async (fingerprints) => {
    read.push([...fingerprints]);
    const stored = { good: snapshot, broken: broken as Snapshot };
    return new Map(Object.entries(stored).filter(([fingerprint]) => fingerprints.includes(fingerprint)));
  });
  const first = await compiled(["good", "good", "broken", "gone"]);
  expect([...first.keys()]).toEqual(["good", "broken"]);
  expect(first.get("broken")).toEqual({ unusable: expect.stringMatching(/.+/) });
  expect((await compiled(["good", "broken"])).get("good")).toBe(first.get("good"));
  expect(read).toEqual([["good", "broken", "gone"]]);
});

test("of many snapshots those used longest ago are dropped", async () => {
  const { snapshot } = compiledOf(draft());
  const read: string[] = [];
  const compiled = createCompiledSources(async (fingerprints) => {
    read.push(...fingerprints);
    return new Map(fingerprints.map((fingerprint) => [fingerprint, snapshot]));
  });
  const names = Array.from({ length: 201 }, (_, no) => String(no));
  for (const name of names) await compiled([name]);
  await compiled(["1", "200"]);
  expect(read).toEqual(names);
  await compiled(["0"]);
  expect(read).toEqual([...names, "0"]);
});
