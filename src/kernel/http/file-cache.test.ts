/** The shared contents of files: read once for many, bounded, and dropped when nobody asks. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../../test/until.ts";
import { createFileCache } from "./file-cache.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-files-"));
  for (const name of ["a", "b", "c"]) await writeFile(join(folder, name), name.repeat(100));
});
afterAll(() => rm(folder, { recursive: true }));
const at = (name: string) => join(folder, name);

test("all callers share one copy", async () => {
  const { read } = createFileCache();
  const copies = await Promise.all(Array.from({ length: 10 }, () => read(at("a"))));
  expect(copies[0]?.toString()).toBe("a".repeat(100));
  expect(new Set([...copies, await read(at("a"))]).size).toBe(1);
});

test("beyond the limit the oldest is dropped and read again when it is needed", async () => {
  const { read } = createFileCache({ bytesMax: 200 });
  const [a, b] = [await read(at("a")), await read(at("b"))];
  expect(await read(at("a"))).toBe(a);
  await read(at("c"));
  expect(await read(at("b"))).toBe(b);
  expect(await read(at("a"))).not.toBe(a);
});

test("nothing is kept when nobody asks for a while", async () => {
  const { read } = createFileCache({ keepMs: 0 });
  const first = await read(at("a"));
  await until(async () => (await read(at("a"))) !== first, "the copy to be dropped");
});

test("a file that is not there is undefined, and what cannot be read is an error each time", async () => {
  const { read } = createFileCache();
  expect(await read(at("nowhere"))).toBeUndefined();
  await expect(read(folder)).rejects.toThrow("EISDIR");
  await expect(read(folder)).rejects.toThrow("EISDIR");
});
