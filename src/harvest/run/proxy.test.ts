/** A source that is reached through a proxy only. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { applyScripted, correct, definitionOf, itemsOf, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database, { MILLRACE_HARVEST_ALLOW_PRIVATE: "source.invalid:80" });

test("a source whose host only a proxy knows is harvested through the proxy that its definition names", async () => {
  const { api, server } = harvests;
  server.on("proxied", correct(itemsOf(15)));
  const { endpoints, ...rest } = definitionOf("proxied");
  const { items } = endpoints as { items: { http: object } };
  const http = { ...items.http, proxy: server.origin };
  await applyScripted({ api, server: { ...server, origin: "http://source.invalid" } }, {
    ...rest,
    endpoints: { items: { ...items, http } },
  } as { source: string });
  expect(await harvests.harvest("proxied")).toMatchObject({ status: "COMPLETE", reconciliation: { received: 15 } });
  expect(server.asked("proxied").map(({ headers }) => headers.host)).toEqual(["source.invalid", "source.invalid"]);
});
