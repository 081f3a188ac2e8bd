/** The doctor's checks of needs, with parts that the test makes. */
import { expect, test } from "vitest";
import type { Db } from "../data/db.ts";
import { examine } from "../doctor.ts";
import { needChecks } from "./doctor.ts";
import type { Need, OverviewPart } from "./part.ts";

const need = (kind: string, state: Need["state"], day: number): Need => ({
  about: { kind, id: "7" },
  state,
  title: `the ${kind}`,
  reason: "It has failed.",
  count: 2,
  at: new Date(Date.UTC(2026, 0, day)),
});
const part = (needs: Need[], checkedKinds?: string[]): OverviewPart => ({
  scope: "run:read",
  ...(checkedKinds && { checkedKinds }),
  now: async () => ({ needs, waiting: [] }),
});
const look = (parts: OverviewPart[]) => examine({} as Db, needChecks(parts));

test("name what has failed or is late, the newest first, and say that the overview lists it", async () => {
  const parts = [part([need("run", "failed", 1), need("table", "late", 1)]), part([need("model", "failed", 2)])];
  expect(await look(parts)).toMatchObject([
    {
      check: "failures",
      verdict: "warning",
      found: expect.stringContaining(": model the model (2), run the run (2). The newest is the model:") as string,
      isListed: true,
    },
    { check: "stuck work", verdict: "ok" },
    { check: "late tables", verdict: "warning", isListed: true },
  ]);
});

test("count what a part says has failed although its entries name something else, with the command that lists it", async () => {
  const missing = part([need("source", "failed", 1)], ["source"]);
  const plans = { command: "millrace notes failed", of: async () => [need("plan", "failed", 3)] };
  const [failures, , late] = await look([{ ...missing, failures: plans }, part([need("run", "failed", 2)])]);
  expect(failures).toMatchObject({
    verdict: "warning",
    found:
      "Failed within 7 days, and not repeated: plan the plan (2), run the run (2). The newest is the plan: It has failed.",
    advice: expect.stringContaining(" `millrace notes failed` lists each failed plan.") as string,
  });
  expect(late?.verdict).toBe("ok");
  const none = { ...plans, of: async () => [] };
  expect((await look([{ ...missing, failures: none }])).map(({ verdict }) => verdict)).toEqual(["ok", "ok", "ok"]);
});

test("leave out what another check of its module names", async () => {
  const parts = [part([need("source", "failed", 2), need("source", "late", 2)], ["source"])];
  expect((await look(parts)).map(({ verdict }) => verdict)).toEqual(["ok", "ok", "ok"]);
  const [failures] = await look([...parts, part([need("source", "failed", 1)])]);
  expect(failures?.found).toContain("source the source (2). ");
});
