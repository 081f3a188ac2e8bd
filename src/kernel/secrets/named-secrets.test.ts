import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { noHints } from "../../../test/no-hints.ts";
import { createSecretBox } from "./cipher.ts";
import { createNamedSecrets, SECRETS_MAX, secretsCheck } from "./named-secrets.ts";

const database = useDatabase();
const key = randomBytes(32);

function open(box = createSecretBox(key)) {
  const secrets = createNamedSecrets({ db: database.db, hints: noHints, box });
  const set = (name: string, value: string, by = "ada") => database.db.tx((tx) => secrets.set(tx, { name, value, by }));
  return { ...secrets, set, all: secrets };
}

test("a secret is stored encrypted, listed without its value, and decrypted by its name", async () => {
  const secrets = open();
  expect(await secrets.set("TOKEN", "open sesame")).toMatchObject({ name: "TOKEN", updated_by: "ada" });
  expect(JSON.stringify(await secrets.list())).not.toContain("sesame");
  expect(JSON.stringify(await database.query("select * from kernel.named_secret"))).not.toContain("sesame");
  expect(await secrets.open(["TOKEN", "NONE"])).toEqual(new Map([["TOKEN", { value: "open sesame" }]]));
});

test("a replaced secret takes effect at once", async () => {
  const secrets = open();
  const first = await secrets.set("SHOP", "first value");
  const second = await secrets.set("SHOP", "second value", "bob");
  expect(second).toMatchObject({ created_at: first.created_at, updated_by: "bob" });
  expect(second.updated_at.getTime()).toBeGreaterThanOrEqual(first.updated_at.getTime()); // Within a millisecond, perhaps.
  expect(await secrets.open(["SHOP"])).toEqual(new Map([["SHOP", { value: "second value" }]]));
});

test("a sealed value that was copied to another name does not open there", async () => {
  const secrets = open();
  await secrets.set("THEIRS", "their value");
  await secrets.set("MINE", "my own value");
  await database.query(
    "update kernel.named_secret set sealed = (select sealed from kernel.named_secret where name = 'THEIRS') where name = 'MINE'",
  );
  expect(await secrets.open(["MINE"])).toEqual(
    new Map([["MINE", { trouble: expect.stringContaining("cannot be opened") }]]),
  );
  await database.db.tx((tx) => secrets.remove(tx, "MINE"));
});

test("the doctor reports secrets that were sealed under another key", async () => {
  const secrets = open();
  await secrets.set("SEALED", "under this key");
  expect(await secretsCheck(secrets.all).look(database.db)).toMatchObject({
    verdict: "ok",
    found: expect.stringMatching(/^(The only secret|All \d+ secrets) can be opened\.$/),
  });
  const elsewhere = open(createSecretBox(randomBytes(32)));
  expect(await secretsCheck(elsewhere.all).look(database.db)).toMatchObject({
    verdict: "broken",
    found: expect.stringMatching(/^(\d+) of \1 secrets? cannot be opened, such as `\w+`\.$/),
  });
});

test("without a key nothing is stored, and the error says why", async () => {
  const secrets = open(createSecretBox(undefined));
  await expect(secrets.set("KEYLESS", "some value")).rejects.toMatchObject({ code: "SECRETS_UNAVAILABLE" });
  expect((await secrets.list()).map(({ name }) => name)).not.toContain("KEYLESS");
});

test("a deleted secret cannot be used or deleted again", async () => {
  const secrets = open();
  await secrets.set("OLD", "old value");
  const remove = () => database.db.tx((tx) => secrets.remove(tx, "OLD"));
  expect(await remove()).toMatchObject({ name: "OLD" });
  expect(await secrets.open(["OLD"])).toEqual(new Map());
  await expect(remove()).rejects.toMatchObject({ code: "SECRET_NOT_FOUND" });
});

test("their number is limited, and at the limit an existing one can still be replaced", async () => {
  const secrets = open();
  await secrets.set("LAST", "last value");
  await database.query(
    `insert into kernel.named_secret (name, sealed, updated_by)
     select 'n' || n, 'v1', 'test' from generate_series(1, ${SECRETS_MAX} - (select count(*) from kernel.named_secret)) n`,
  );
  await expect(secrets.set("ONE_MORE", "one more value")).rejects.toMatchObject({ code: "SECRETS_FULL" });
  expect(await secrets.set("LAST", "another value")).toMatchObject({ name: "LAST" });
});
