import { expect, test } from "vitest";
import { EngineRefusal } from "./engine.ts";
import { createEngines } from "./engines.ts";

const url = "postgres://me:secret@127.0.0.1:1/db";
const engines = createEngines({ warehouse: { kind: "postgres", url } }, { lakeDir: undefined });

test("`duckdb` exists beside the configured engines, and none is opened before its first use", async () => {
  expect(engines.names()).toEqual(["duckdb", "warehouse"]);
  expect(engines.get("warehouse")).toMatchObject({ name: "warehouse", kind: "postgres" });
  expect(engines.get("duckdb").kind).toBe("duckdb");
  await engines.close();
});

test("an unknown name is refused with the known ones", () => {
  expect(() => engines.get("warehose")).toThrow(
    new EngineRefusal(
      "There is no engine `warehose`. Did you mean `warehouse`? Known: duckdb, warehouse. Others are named under `engines` in millrace.yaml.",
    ),
  );
  expect(() => engines.get("constructor")).toThrow("There is no engine `constructor`. Known: duckdb, warehouse.");
});
