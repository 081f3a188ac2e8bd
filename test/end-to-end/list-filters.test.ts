/** Query parameters of every route that reads, alone, in pairs and all at once. The routes are those of `/openapi.json`. */
import { expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { makeTenant } from "../lineage-process.ts";
import { ADMIN_KEY, useMillrace } from "../millrace.ts";
import { example, isStream, operationsOf, pathOf, readDocument } from "./operations.ts";

const millrace = useMillrace(useDatabase());

/** Where the example of the schema is answered before the database is asked. */
const VALUES: Record<string, string> = {
  tenant: "7",
  chainId: "00000000-0000-4000-8000-000000000000",
  parentRunId: "00000000-0000-4000-8000-000000000000",
  dimensions: "{}",
};

test("no combination of query parameters fails", async () => {
  await makeTenant(millrace.api, 7);
  const operations = operationsOf(await readDocument(millrace.url), { tenantId: "7" });
  let calls = 0;
  for (const operation of operations) {
    if (operation.method !== "GET" || isStream(operation)) continue;
    const parameters = operation.parameters.filter((parameter) => parameter.in === "query");
    const required = parameters.filter((parameter) => parameter.required);
    const optional = parameters.filter((parameter) => !parameter.required);
    const pairs = optional.flatMap((one, index) => optional.slice(index + 1).map((other) => [one, other]));
    for (const some of [[], optional, ...optional.map((one) => [one]), ...pairs]) {
      const given = new URLSearchParams();
      for (const { name, schema } of [...required, ...some]) given.set(name, VALUES[name] ?? String(example(schema)));
      const query = given.toString();
      const answer = await fetch(`${millrace.url}${pathOf(operation)}?${query}`, {
        headers: { authorization: `Bearer ${ADMIN_KEY}` },
      });
      const text = await answer.text();
      expect(answer.status, `GET ${operation.path}?${query}: ${text}`).toBeLessThan(500);
      calls += 1;
    }
  }
  expect(calls).toBeGreaterThan(200);
});
