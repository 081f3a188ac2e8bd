/** Clients that got no answer send the same event again, to whichever server there is: it stays one event. */
import { expect, test } from "vitest";
import { sparkEvent } from "../../src/lineage/events.fixture.ts";
import { testLineage } from "../../src/lineage/lineage.fixture.ts";
import { useDatabase } from "../database.ts";
import { inTime, makeTenant, postEvent } from "../lineage-process.ts";
import { type Server, startServer } from "../server.ts";

const EVENTS = 30;
const SENDERS = 6;

const database = useDatabase();
const lineage = testLineage(database);

test(`${EVENTS} events sent ${SENDERS} times at once to two servers, and again after a restart, are ${EVENTS}`, async () => {
  const servers = await Promise.all([0, 1].map(() => startServer({ database })));
  const [first, second] = servers as [Server, Server];
  const { keys } = await makeTenant(first.api, 7);
  const runs = Array.from({ length: EVENTS }, (_, n) =>
    sparkEvent({
      eventType: n % 2 === 0 ? "START" : "COMPLETE",
      runId: `0195a000-0000-7000-8000-${String(n >> 1).padStart(12, "0")}`,
    }),
  );
  const events = inTime(runs);
  const send = ({ url }: Server) => events.map((event) => postEvent(url, keys.COMPUTE_ENGINE, event));
  const all = await Promise.all(
    Array.from({ length: SENDERS }, (_, n) => Promise.all(send(n % 2 === 0 ? first : second))),
  );

  const answers = events.map((_, index) => all.map((one) => one[index]));
  for (const [index, ofOne] of answers.entries()) {
    expect(new Set(ofOne.map((answer) => answer?.status)), `event ${index}`).toEqual(new Set([201]));
    expect(new Set(ofOne.map((answer) => answer?.body["id"])).size, `event ${index}`).toBe(1);
    expect(
      ofOne.filter((answer) => answer?.body["duplicate"] === false),
      `event ${index}`,
    ).toHaveLength(1);
  }

  await first.stop();
  const third = await startServer({ database });
  for (const [index, answer] of (await Promise.all(send(third))).entries()) {
    expect(answer.body).toMatchObject({ id: answers[index]?.[0]?.body["id"], duplicate: true, state: "APPLIED" });
  }
  expect(await database.query("select count(*)::int from lineage.lineage_events")).toEqual([{ count: EVENTS }]);
  expect(Object.values((await lineage.graph("7")).executions), "each run once").toEqual([EVENTS / 2]);
  expect(await Promise.all([second.stop(), third.stop()])).toEqual([0, 0]);
});
