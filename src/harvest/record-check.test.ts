import { expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { makeSource } from "./landing/windows.fixture.ts";
import { recordCheck } from "./record-check.ts";

const database = useDatabase();

test("the doctor notices changes that the transactions of the cluster have not come to", async () => {
  expect(await recordCheck.look(database.db)).toMatchObject({ verdict: "ok" });
  const source = await makeSource(database);
  await source.harvest([
    { key: "a", title: "A" },
    { key: "b", title: "B" },
  ]);
  expect(await recordCheck.look(database.db)).toMatchObject({ verdict: "ok" });
  await database.query("update harvest.record set change_xid = '4000000000000' where item_key = 'b'");
  expect(await recordCheck.look(database.db)).toMatchObject({
    verdict: "broken",
    found: expect.stringContaining("4000000000000") as string,
    advice: expect.stringContaining("without `after`") as string,
  });
});
