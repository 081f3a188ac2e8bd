/** The schemas of routes are compiled when they are first used. Here all are at the start, so that none is a surprise later. */
import { expect, test, vi } from "vitest";
import { useDatabase } from "../database.ts";
import { useMillrace } from "../millrace.ts";

const { compiled } = vi.hoisted(() => ({ compiled: { count: 0 } }));
vi.mock("../../src/kernel/http/when-used.ts", () => ({
  createWhenUsed:
    () =>
    <Compiled>(_schema: unknown, compile: () => Compiled): Compiled => {
      compiled.count += 1;
      return compile();
    },
}));

// All that it takes: a schema that cannot be compiled stops the start.
const millrace = useMillrace(useDatabase());

test("every schema of every route can be compiled", async () => {
  expect(await millrace.api.get("/readyz")).toMatchObject({ status: 200 });
  expect(compiled.count).toBeGreaterThan(500);
});
