/** The size limit of the log, and reading from an offset. */

import { open, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readLog, rotateLog } from "./log-file.ts";
import { namesIn, temporaryFolder } from "./testing.fixture.ts";

test("a log over the limit is rotated while its writer continues, and only one old one is kept", async () => {
  const folder = await temporaryFolder();
  const path = join(folder, "postgres.log");
  const writer = await open(path, "a");
  await writer.write("first, a long line\n");
  await rotateLog(path, 10);
  await writer.write("second\n");
  expect(await readFile(path, "utf8")).toBe("second\n");
  expect(await readFile(`${path}.1`, "utf8")).toBe("first, a long line\n");

  await rotateLog(path, 10);
  expect(await readFile(path, "utf8")).toBe("second\n");
  await rotateLog(path, 5);
  expect(await readFile(`${path}.1`, "utf8")).toBe("second\n");
  expect(namesIn(folder)).toEqual(["postgres.log", "postgres.log.1"]);
  await writer.close();
});

test("text after an offset is read, or its end if it is long", async () => {
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
