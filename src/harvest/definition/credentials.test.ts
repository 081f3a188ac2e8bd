import { randomBytes } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { noHints } from "../../../test/no-hints.ts";
import type { Db } from "../../kernel/data/db.ts";
import { createSecretBox } from "../../kernel/secrets/cipher.ts";
import { createNamedSecrets } from "../../kernel/secrets/named-secrets.ts";
import { CACHE_MS, createCredentials } from "./credentials.ts";

const database = useDatabase();
const box = createSecretBox(randomBytes(32));

beforeEach(async () => {
  await database.query("delete from harvest.reg_provenance");
  await database.query("delete from kernel.named_secret");
  await database.query(
    "insert into harvest.reg_provenance (provenance_code, name, base_url, updated_by) values ('shop', 'Shop', 'https://a.example', 't')",
  );
  await database.query(
    `insert into harvest.reg_prov_credential (provenance_code, credential_name, kind, reference)
     values ('shop', 'key', 'env', 'SHOP_KEY'), ('shop', 'token', 'secret', 'SHOP_TOKEN')`,
  );
});

/** A process with its own cache, environment and clock. `afterRead` is awaited after its first statement. */
function open({
  env = {},
  keyed = true,
  afterRead,
}: {
  env?: Record<string, string>;
  keyed?: boolean;
  afterRead?: () => Promise<void>;
} = {}) {
  let now = 0;
  let reads = 0;
  const { db } = database;
  const counting: Db = {
    ...db,
    async rows(statement, values) {
      reads += 1;
      const isFirst = reads === 1;
      const rows = await db.rows(statement, values);
      if (isFirst) await afterRead?.();
      return rows;
    },
  };
  const secrets = createNamedSecrets({ db, hints: noHints, box });
  const credentials = createCredentials({
    db: counting,
    env,
    secrets,
    box: keyed ? box : createSecretBox(undefined),
    clock: { now: () => now },
  });
  return {
    resolve: (name: string) => credentials.resolve("shop", name),
    renew: (name: string) => credentials.resolve("shop", name, { isNew: true }),
    list: () => credentials.list("shop"),
    store: (value: string) => db.tx((tx) => secrets.set(tx, { name: "SHOP_TOKEN", value, by: "test" })),
    pass: (ms: number) => {
      now += ms;
    },
    reads: () => reads,
  };
}
const stored = () =>
  database.query<{ version: number; value_hash: string | null }>(
    "select version, value_hash from harvest.reg_prov_credential where credential_name = 'key'",
  );

describe("a credential", () => {
  test("is the environment variable or the secret that it refers to, in its first version", async () => {
    const { resolve, store } = open({ env: { SHOP_KEY: "key-value-1" } });
    await store("token-1234");
    expect(await resolve("key")).toEqual({ id: expect.any(Number), value: "key-value-1", version: 1 });
    expect(await resolve("token")).toEqual({ id: expect.any(Number), value: "token-1234", version: 1 });
  });

  test("has a new version when its value changes, and only then", async () => {
    const env = { SHOP_KEY: "key-value-1" };
    const { resolve, pass } = open({ env });
    const versions: unknown[] = [];
    for (const value of ["key-value-1", "key-value-1", "key-value-2", "key-value-2", "key-value-1"]) {
      env.SHOP_KEY = value;
      versions.push(await resolve("key"));
      pass(CACHE_MS);
    }
    expect(versions).toMatchObject([1, 1, 2, 2, 3].map((version) => ({ version })));
    expect(await open({ env }).resolve("key")).toMatchObject({ version: 3 });
  });

  test("gets one new version from many processes that see its new value at once", async () => {
    const count = 4;
    let readers = 0;
    let go = () => {};
    const allHaveRead = new Promise<void>((resolve) => {
      go = resolve;
    });
    const afterRead = () => {
      readers += 1;
      if (readers === count) go();
      return allHaveRead;
    };
    const found = await Promise.all(
      Array.from({ length: count }, () => open({ env: { SHOP_KEY: "key-value-1" }, afterRead }).resolve("key")),
    );
    expect(found).toMatchObject(Array.from({ length: count }, () => ({ version: 1 })));
  });

  test("is read once in five seconds, however many pages use it", async () => {
    const { resolve, reads, pass, store } = open();
    await store("token-1234");
    await Promise.all(Array.from({ length: 20 }, () => resolve("token")));
    const first = reads();
    pass(CACHE_MS - 1);
    await resolve("token");
    expect(reads()).toBe(first);
    await store("token-5678");
    pass(1);
    expect(await resolve("token")).toMatchObject({ value: "token-5678", version: 2 });
    expect(reads()).toBeGreaterThan(first);
  });

  test("is read again at once for a caller to whom the value was refused, or who had none", async () => {
    const { resolve, renew, store } = open();
    expect(await resolve("token")).toHaveProperty("missing");
    await store("token-1234");
    expect(await resolve("token")).toHaveProperty("missing");
    expect(await renew("token")).toMatchObject({ value: "token-1234" });
    await store("token-5678");
    expect(await renew("token")).toMatchObject({ value: "token-5678", version: 2 });
    expect(await resolve("token")).toMatchObject({ value: "token-5678" }); // And is then known to all.
  });

  test("is not stored, and neither is a hash that can be guessed", async () => {
    await open({ env: { SHOP_KEY: "hunter2-value" } }).resolve("key");
    const [row] = await stored();
    expect(row?.value_hash).toMatch(/^[\w-]{43}$/);
    expect(row?.value_hash).toBe(box.digest("hunter2-value", "harvest.reg_prov_credential:shop:key"));
    expect(JSON.stringify(await database.query("select * from harvest.reg_prov_credential"))).not.toContain(
      "hunter2-value",
    );
  });

  test("works without a secret key, and then its version stays 0", async () => {
    expect(await open({ env: { SHOP_KEY: "key-value-1" }, keyed: false }).resolve("key")).toMatchObject({
      value: "key-value-1",
      version: 0,
    });
    expect(await stored()).toEqual([{ version: 0, value_hash: null }]);
  });

  test("that has no value says where to put it", async () => {
    const { resolve } = open({ env: { SHOP_KEY: "" } });
    expect(await resolve("key")).toEqual({
      missing:
        "The credential `key` of shop has no value: the environment variable SHOP_KEY of this process is not set.",
    });
    expect(await resolve("token")).toEqual({
      missing:
        "The credential `token` of shop has no value: there is no secret SHOP_TOKEN. Create it with `millrace secrets set`.",
    });
    expect(await resolve("kay")).toEqual({ missing: "The source shop has no credential `kay`." });
  });

  test("is listed with its reference and version, and without its value", async () => {
    const { resolve, list } = open({ env: { SHOP_KEY: "hunter2-value" } });
    await resolve("key");
    const listed = await list();
    expect(listed).toEqual([
      { name: "key", kind: "env", reference: "SHOP_KEY", version: 1, changedAt: expect.any(Date), present: true },
      { name: "token", kind: "secret", reference: "SHOP_TOKEN", version: 0, changedAt: null, present: false },
    ]);
    expect(JSON.stringify(listed)).not.toContain("hunter2-value");
  });
});

test("a failure of the database is not remembered", async () => {
  const failing = { ...database.db, rows: () => Promise.reject(new Error("the database is away")) };
  const credentials = createCredentials({
    db: failing,
    env: {},
    secrets: { open: async () => new Map() },
    box,
    clock: { now: () => 0 },
  });
  await expect(credentials.resolve("shop", "key")).rejects.toThrow("the database is away");
  Object.assign(failing, { rows: database.db.rows });
  expect(await credentials.resolve("shop", "key")).toHaveProperty("missing");
});
