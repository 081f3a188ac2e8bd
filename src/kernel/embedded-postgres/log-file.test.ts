/** The log keeps below its limit and gives back what was written since a moment. */

import { open, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { boundLog, readLog } from "./log-file.ts";
import { namesIn, temporaryFolder } from "./testing.fixture.ts";

test("a log over the limit is moved aside while its writer goes on, and only one old one is kept", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "postgres.log");
  const writer = await open(path, "a");
  await writer.write("first, a long line\n");
  await boundLog(path, 10);
  await writer.write("second\n");
  expect(await readFile(path, "utf8")).toBe("second\n");
  expect(await readFile(`${path}.1`, "utf8")).toBe("first, a long line\n");

  await boundLog(path, 10);
  expect(await readFile(path, "utf8")).toBe("second\n");
  await boundLog(path, 5);
  expect(await readFile(`${path}.1`, "utf8")).toBe("second\n");
  expect(namesIn(folder)).toEqual(["postgres.log", "postgres.log.1"]);
  await writer.close();
});

test("what was written since an offset is read, its last part if it is long", async () => {
  const path = join(await temporaryFolder(), "postgres.log");
  expect(await readLog(path, 0)).toBe("");
  await writeFile(path, "old\nnew\n");
  expect(await readLog(path, 4)).toBe("new\n");
  expect(await readLog(path, 8)).toBe("");
  await writeFile(path, `${"x".repeat(100_000)}end`);
  const tail = await readLog(path, 0);
  expect(tail).toHaveLength(64 * 1024);
  expect(tail).toMatch(/xend$/);
});
