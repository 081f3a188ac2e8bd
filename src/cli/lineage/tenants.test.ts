/** `millrace lineage ready` against a server that needs several requests for it; the rest is in lineage.test.ts. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { runCli } from "../../../test/cli-in-process.ts";

test("the call is repeated until the tenant is ready, and the totals are printed", async () => {
  const tenant = { id: 7, code: "acme", name: "Acme" };
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const isLast = asked.length === 3;
    const done = { applied: isLast ? 5 : 200, skipped: isLast ? 0 : 3, dead: isLast ? 1 : 0 };
    const state = isLast ? "READY" : "SYNCING";
    response
      .writeHead(isLast ? 200 : 202, { "content-type": "application/json", "millrace-version": "0.0.0" })
      .end(JSON.stringify({ ...tenant, state, ...done }));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await runCli(["lineage", "ready", "7"], { MILLRACE_URL: url })).toEqual({
    exit: 0,
    stderr: "",
    stdout:
      "Tenant 7 (acme) is READY. Stored events: 405 applied, 6 from before the cutover skipped, " +
      "1 could not be applied (`millrace lineage dead-letters --tenant 7`).\n",
  });
  expect(asked).toEqual(Array(3).fill("POST /api/v1/lineage/tenants/7:ready"));
});
