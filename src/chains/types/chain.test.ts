import { describe, expect, test } from "vitest";
import { chain } from "./chain.ts";
import { nodeContext } from "./node-context.fixture.ts";

describe("a chain in a chain", () => {
  const ctx = nodeContext({ opTime: "2026010100", params: { day: 7 } });

  test("is requested by name, with its own params", async () => {
    expect(await chain.execute(ctx, { name: "load", params: { table: "orders" } })).toEqual({
      subRun: { of: { chain: "load" }, params: { table: "orders" }, opTime: "2026010100" },
    });
  });

  test("has the opTime of its parent run by default, and none of its params", async () => {
    expect(await chain.execute(ctx, { name: "load", opTime: "2025123123" })).toEqual({
      subRun: { of: { chain: "load" }, params: {}, opTime: "2025123123" },
    });
    expect(await chain.execute(nodeContext(), { name: "load" })).toMatchObject({ subRun: { opTime: null } });
  });
});
