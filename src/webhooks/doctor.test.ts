import { beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { webhookChecks } from "./doctor.ts";
import { actor, subscription, update, useWebhooks } from "./webhooks.fixture.ts";

const database = useDatabase();
const webhooks = useWebhooks(database);

const verdicts = async () =>
  Object.fromEntries(
    await Promise.all(webhookChecks.map(async ({ name, look }) => [name, (await look(database.db)).verdict] as const)),
  );

beforeEach(async () => {
  const process = await webhooks.open();
  await process.subscriptions.create(subscription("https://x.example/?token=t"), actor);
  await process.consume("kpi.updated", update());
});

test("the doctor finds nothing where nothing is wrong", async () => {
  expect(await verdicts()).toEqual({ "webhook deliveries": "ok", "webhook endpoints": "ok" });
});

test("the doctor finds deliveries that no process sends, and those of a process that was lost", async () => {
  await database.query("update webhooks.delivery set due_at = now() - interval '2 minutes'");
  expect(await verdicts()).toMatchObject({ "webhook deliveries": "warning" });
  await database.query("update webhooks.delivery set status = 'SENDING', due_at = null, session_id = 0, fence = 1");
  expect(await verdicts()).toMatchObject({ "webhook deliveries": "broken" });
});

test("the doctor finds endpoints that fail, and names one without its query", async () => {
  await database.query("update webhooks.endpoint set failing_since = now() - interval '2 hours'");
  expect(await verdicts()).toMatchObject({ "webhook endpoints": "warning" });
  const found = await webhookChecks[1]?.look(database.db);
  expect(found?.found).toContain("https://x.example/.");
});
