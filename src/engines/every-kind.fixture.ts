/** An engine of each kind, named after its kind, for tests of the rules of engine.ts. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { useDatabase } from "../../test/database.ts";
import { startTrino, type TestTrino } from "../../test/trino-server.ts";
import type { Engine, Engines } from "./engine.ts";
import { createEngines } from "./engines.ts";

export const KINDS = ["duckdb", "postgres", "trino"] as const satisfies Engine["kind"][];

export interface EveryKind {
  engines: Engines;
  /** The same engines again, with a DuckDB in memory. The caller closes them. */
  openOthers(): Engines;
}

/** Call at the top of a test file; the fields are set once the tests run. */
export function useEveryKind(): EveryKind {
  const database = useDatabase();
  const every = {} as EveryKind;
  let trino: TestTrino;
  let lakeDir: string;

  beforeAll(async () => {
    lakeDir = await mkdtemp(join(tmpdir(), "millrace-lake-"));
    trino = await startTrino({ connection: database.connection });
    const open = (lake: string | undefined) =>
      createEngines(
        {
          postgres: { kind: "postgres", url: database.url },
          trino: { kind: "trino", url: trino.url, user: "tester" },
        },
        { lakeDir: lake },
      );
    every.engines = open(lakeDir);
    every.openOthers = () => open(undefined);
  });
  afterAll(async () => {
    await every.engines.close();
    await trino.stop();
    await rm(lakeDir, { recursive: true });
  });
  return every;
}
