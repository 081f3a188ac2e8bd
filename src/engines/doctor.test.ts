import { mkdtemp, readdir, rm } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { examine } from "../kernel/doctor.ts";
import { engineChecks } from "./doctor.ts";
import { createEngines } from "./engines.ts";

const database = useDatabase();

test("the doctor checks the engines on other servers, prints no secret, and does not open DuckDB's file", async () => {
  const nobody = createServer();
  await new Promise<void>((resolve) => nobody.listen(0, "127.0.0.1", resolve));
  const { port } = nobody.address() as AddressInfo;
  await new Promise((resolve) => nobody.close(resolve));
  const lakeDir = await mkdtemp(join(tmpdir(), "millrace-lake-"));
  const engines = createEngines(
    {
      well: { kind: "postgres", url: database.url },
      gone: { kind: "postgres", url: `postgres://me:SECRET@localhost:${port}/db` },
      lost: { kind: "trino", url: `http://localhost:${port}`, user: "me", password: "SECRET" },
    },
    { lakeDir },
  );
  const findings = await examine(database.db, engineChecks(engines));
  expect(findings).toMatchObject([
    { check: "engine well", verdict: "ok", found: "The engine `well` (postgres) answers." },
    { check: "engine gone", verdict: "broken", found: expect.stringContaining("ECONNREFUSED") },
    { check: "engine lost", verdict: "broken", found: expect.stringContaining("ECONNREFUSED") },
  ]);
  expect(JSON.stringify(findings)).not.toContain("SECRET");
  expect(await readdir(lakeDir)).toEqual([]);
  await engines.close();
  await rm(lakeDir, { recursive: true });
});
