/** The work of a definition that is full of names: it must not keep the process from everything else. */
import { describe, expect, test } from "vitest";
import { chain } from "../types/chain.ts";
import type { Reference } from "../types/node-type.ts";
import { createRegistry } from "../types/registry.ts";
import { unknownReferences } from "./references.ts";
import { PROBLEMS_MAX } from "./validate.ts";

/** A thing that has `names`, and counts the searches for a similar one. */
function reference(what: string, names: readonly string[]): Reference & { searches: number } {
  const all = [...names];
  const counted = {
    field: "name",
    what,
    searches: 0,
    existing: async (asked: readonly string[]) => asked.filter((name) => names.includes(name)),
    all: async () => all,
  };
  all[Symbol.iterator] = () => {
    counted.searches += 1;
    return names.values();
  };
  return counted;
}

const unknownIn = (cfgs: readonly object[], { chains, secrets }: Record<"chains" | "secrets", Reference>) =>
  unknownReferences(
    { nodes: cfgs.map((cfg, index) => ({ id: `n${index}`, type: "chain", cfg })) },
    { registry: createRegistry([{ ...chain, references: [chains] }]), secrets, ownName: undefined },
  );

describe("a definition", () => {
  test("with many unknown names has a limited list of problems, the first of them with a similar name", async () => {
    const chains = reference("chain", ["nightly 5"]);
    const secrets = reference("secret", []);
    const cfgs = Array.from({ length: 1_000 }, (_, n) => ({
      name: `nightlyy ${n}`,
      params: { p: `\${secrets.S${n}}` },
    }));
    const problems = await unknownIn(cfgs, { chains, secrets });
    expect(problems).toHaveLength(PROBLEMS_MAX);
    expect(problems[5]).toEqual({
      path: "nodes[5].cfg.name",
      nodeId: "n5",
      message: "there is no chain `nightlyy 5`. Did you mean `nightly 5`?",
    });
    expect([chains.searches, secrets.searches]).toEqual([10, 0]);
  });

  test("with one unknown name in many nodes looks for a similar one once", async () => {
    const chains = reference("chain", ["nightly"]);
    const cfgs = Array.from({ length: 50 }, () => ({ name: "nightyl" }));
    const problems = await unknownIn(cfgs, { chains, secrets: reference("secret", []) });
    expect(new Set(problems.map(({ message }) => message))).toEqual(
      new Set(["there is no chain `nightyl`. Did you mean `nightly`?"]),
    );
    expect(chains.searches).toBe(1);
  });

  test("with many secrets that exist is not searched for each of them", async () => {
    const names = Array.from({ length: 500 }, (_, n) => `S${n}`);
    const text = names.map((name) => `\${secrets.${name}}`).join(" ");
    let reads = 0;
    const params = {
      get text() {
        reads += 1;
        return text;
      },
    };
    const known = { chains: reference("chain", ["nightly"]), secrets: reference("secret", names) };
    expect(await unknownIn([{ name: "nightly", params }], known)).toEqual([]);
    expect(reads).toBe(1);
  });
});
