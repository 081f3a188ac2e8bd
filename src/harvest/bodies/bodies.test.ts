/** Bodies in a folder and in the database. */
import { createHash, randomBytes } from "node:crypto";
import { copyFile, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { systemIds } from "../../kernel/ids.ts";
import { systemClock } from "../../kernel/time/clock.ts";
import { createBodies } from "./bodies.ts";

const database = useDatabase();
let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "millrace-bodies-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const open = (folder: string | undefined) =>
  createBodies({ dir: folder, db: database.db, clock: systemClock, ids: systemIds });
const sha256 = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const page = () => Buffer.from(`{"id": "${randomBytes(8).toString("hex")}", "text": "${"a title ".repeat(200)}"}`);
const pathOf = (hash: string) => join(dir, hash.slice(0, 2), `${hash}.br`);
const rows = () => database.query<{ body_hash: string }>("select body_hash from harvest.body");

test("a body is a compressed file, named by the hash of its bytes, before the transaction begins", async () => {
  const bytes = page();
  const bodies = open(dir);
  const { hash } = await bodies.prepare(bytes);
  expect(hash).toBe(sha256(bytes));
  expect((await stat(pathOf(hash))).size).toBeLessThan(bytes.length / 2);
  expect(await bodies.get(hash)).toEqual(bytes);
  expect(await readdir(join(dir, "tmp"))).toEqual([]);
  expect(await rows()).toEqual([]);
});

test("a body that comes again is not written again", async () => {
  const bytes = page();
  const { hash } = await open(dir).prepare(bytes);
  const first = await stat(pathOf(hash));
  await open(dir).prepare(bytes);
  expect(await stat(pathOf(hash))).toMatchObject({ ino: first.ino, mtimeMs: first.mtimeMs });
});

test("the same body from many callers at once is one whole file", async () => {
  const bytes = page();
  const bodies = open(dir);
  const prepared = await Promise.all(Array.from({ length: 20 }, () => bodies.prepare(bytes)));
  expect(new Set(prepared.map(({ hash }) => hash)).size).toBe(1);
  expect(await bodies.get(sha256(bytes))).toEqual(bytes);
});

test("a body that cannot be written is refused, and leaves nothing half-written", async () => {
  const bytes = page();
  await writeFile(join(dir, sha256(bytes).slice(0, 2)), "a file where the directory should be");
  const bodies = open(dir);
  await expect(bodies.prepare(bytes)).rejects.toThrow(/EEXIST|ENOTDIR/);
  await rm(join(dir, sha256(bytes).slice(0, 2)));
  await bodies.prepare(bytes);
  expect(await bodies.get(sha256(bytes))).toEqual(bytes);
  expect(await readdir(join(dir, "tmp"))).toEqual([]);
});

test("without a folder a body is a row of the caller's transaction", async () => {
  const bytes = page();
  const bodies = open(undefined);
  const { hash, commitIn } = await bodies.prepare(bytes);
  const given = new Error("the batch failed");
  await expect(
    database.db.tx(async (tx) => {
      await commitIn(tx);
      throw given;
    }),
  ).rejects.toBe(given);
  expect(await bodies.get(hash)).toBeUndefined();
  for (let times = 0; times < 2; times += 1) await database.db.tx(commitIn);
  expect(await rows()).toEqual([{ body_hash: hash }]);
  expect(await bodies.get(hash)).toEqual(bytes);
  // Bodies of the time before there was a folder are still found.
  expect(await open(dir).get(hash)).toEqual(bytes);
});

test("a damaged file is noticed", async () => {
  const bodies = open(dir);
  const [{ hash }, other] = await Promise.all([bodies.prepare(page()), bodies.prepare(page())]);
  await rm(pathOf(hash));
  await copyFile(pathOf(other.hash), pathOf(hash));
  await expect(bodies.get(hash)).rejects.toThrow(/damaged/);
});

test("an unknown hash, and a text that is no hash, have no body", async () => {
  expect(await open(dir).get("0".repeat(64))).toBeUndefined();
  expect(await open(dir).get("../../etc/passwd")).toBeUndefined();
});

test("what a killed process left half-written is removed after an hour, and no earlier", async () => {
  const bodies = open(dir);
  expect(await bodies.removeLeftovers()).toBe(0);
  await bodies.prepare(page());
  const [old, young] = [join(dir, "tmp", "old"), join(dir, "tmp", "young")];
  for (const path of [old, young]) await writeFile(path, "half");
  const hourAgo = new Date(systemClock.now() - 3_601_000);
  await utimes(old, hourAgo, hourAgo);
  expect(await bodies.removeLeftovers()).toBe(1);
  expect(await readdir(join(dir, "tmp"))).toEqual(["young"]);
});
