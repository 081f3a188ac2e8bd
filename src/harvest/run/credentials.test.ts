/** Credentials that are replaced or set while plans run. */
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { correct, itemsOf, type Script, useScripted } from "./scripted.fixture.ts";

const database = useDatabase();
const harvests = useScripted(database);

async function setSecret(name: string, value: string): Promise<void> {
  expect(await harvests.api.put(`/api/v1/secrets/${name}`, { value })).toMatchObject({ status: 200 });
}

function withKey(script: Script, secret: string, required = true): Promise<string> {
  const auth = { type: "API_KEY", location: "HEADER", name: "x-key", credential: "key", required };
  return harvests.source(script, { auth }, { credentials: { key: { secret } } });
}

test.each([401, 403])(
  "a key that was replaced is used at once where the old one is refused with %s",
  async (status) => {
    const answer = correct(itemsOf(30));
    const name = `ROTATED_${status}`;
    let key = "key-before-rotation";
    await setSecret(name, key);
    const source = await withKey(async (request) => {
      if (request.query.get("offset") === "10" && key === "key-before-rotation") {
        key = "key-after-rotation";
        await setSecret(name, key);
      }
      return request.headers["x-key"] === key ? answer(request) : { status, body: { error: "no access" } };
    }, name);
    const ended = await harvests.harvest(source);
    expect(ended).toMatchObject({ status: "COMPLETE", reconciliation: { received: 30 } });
    expect(harvests.server.asked(source).map(({ query }) => query.get("offset"))).toContain("20");
    const versions = await database.query<{ version: number }>(
      "select credential_version as version from harvest.ing_task_run_batch where plan_id = $1 order by batch_no",
      [ended.planId],
    );
    expect(versions).toEqual([1, 2, 2].map((version) => ({ version })));
  },
);

test("a key that is refused and has not changed is not tried again", async () => {
  await setSecret("REFUSED", "key-that-is-refused");
  const source = await withKey(() => ({ status: 401, body: {} }), "REFUSED");
  expect(await harvests.harvest(source)).toMatchObject({ status: "FAILED" });
  expect(harvests.server.asked(source)).toHaveLength(1);
});

test("a key that keeps changing is tried twice", async () => {
  let no = 0;
  const change = () => setSecret("CHANGING", `key-number-${(no += 1)}`);
  await change();
  const source = await withKey(async () => {
    await change();
    return { status: 401, body: {} };
  }, "CHANGING");
  expect(await harvests.harvest(source)).toMatchObject({ status: "FAILED" });
  expect(harvests.server.asked(source)).toHaveLength(2);
});

test("a key that was missing is found as soon as it is set", async () => {
  const source = await withKey(correct(itemsOf(10)), "SET_LATER");
  expect(await harvests.harvest(source)).toMatchObject({ status: "FAILED" });
  await setSecret("SET_LATER", "key-that-was-set-later");
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
});

test("a request without a key that may be left out takes one that was set meanwhile, where it is refused", async () => {
  const answer = correct(itemsOf(10));
  const source = await withKey(
    async (request) => {
      if (request.headers["x-key"] !== undefined) return answer(request);
      await setSecret("SET_MEANWHILE", "key-that-was-set-meanwhile");
      return { status: 403, body: {} };
    },
    "SET_MEANWHILE",
    false,
  );
  expect(await harvests.harvest(source)).toMatchObject({ status: "COMPLETE" });
});
