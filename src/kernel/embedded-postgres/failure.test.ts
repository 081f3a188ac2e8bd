/** Errors of Postgres and of the operating system become sentences that say what to do. */

import { expect, test } from "vitest";
import { OperatorError } from "../errors.ts";
import { explained, postgresTrouble } from "./failure.ts";
import { temporaryFolder } from "./testing.fixture.ts";

test.each([
  ['FATAL:  could not write lock file "postmaster.pid": No space left on device', /The disk that holds \S+ is full/],
  [
    'FATAL:  could not resize shared memory segment "/PostgreSQL.1" to 16 bytes: No space left on device',
    /shared memory of this machine is used up/,
  ],
  ["FATAL:  could not open file: Permission denied", /may not read or write its files/],
  ["FATAL:  could not write: Read-only file system", /read-only file system/],
  ["initdb: error: could not look up effective user ID 1234: user does not exist", /an entry in \/etc\/passwd/],
  ["postgres: error while loading shared libraries: libstdc++.so.6", /A system library that Postgres needs is missing/],
  ["FATAL:  could not map anonymous shared memory: Cannot allocate memory", /not enough memory/],
  [
    "FATAL:  pre-existing shared memory block (key 1, ID 2) is still in use",
    /Processes of an earlier Postgres still use/,
  ],
  ["PANIC:  could not locate a valid checkpoint record at 0/1", /is damaged\. Restore it from a backup/],
])("%s", async (words, sentence) => {
  const trouble = await postgresTrouble("Postgres did not start.", `noise\n${words}\n`, await temporaryFolder());
  expect(trouble).toBeInstanceOf(OperatorError);
  expect(trouble.message).toMatch(sentence);
  expect(trouble.message).toContain(`The last lines of Postgres:\nnoise\n${words}`);
});

test("unknown output is shown unchanged, at most eight lines of it", async () => {
  const words = Array.from({ length: 20 }, (_, line) => `line ${line}`).join("\n");
  const { message } = await postgresTrouble("Postgres did not start.", words, await temporaryFolder());
  expect(message.split("\n")).toHaveLength(10);
  expect(message).toMatch(/line 12\n.*line 19$/s);
});

test("an unexpected error is not changed", async () => {
  const bug = new TypeError("undefined is not a function");
  await expect(explained("/data", () => Promise.reject(bug))).rejects.toBe(bug);
});
