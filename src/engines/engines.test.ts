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

test("a parser of DuckDB that could not be opened is opened again, and keeps no engine from being closed", async () => {
  let opened = 0;
  let closed = 0;
  const parser = { errorIn: async () => "a mistake", close: () => void (closed += 1) };
  const openParser = async () => {
    opened += 1;
    if (opened !== 2) throw new Error(`not opened ${opened}`);
    return parser;
  };
  const one = createEngines({}, { lakeDir: undefined, openParser });
  await expect(one.syntaxError("duckdb", "selec 1")).rejects.toThrow("not opened 1");
  expect(await one.syntaxError("duckdb", "selec 1")).toBe("a mistake");
  await one.close();
  expect(closed).toBe(1);

  // Closed while it is being opened in vain.
  const other = createEngines({}, { lakeDir: undefined, openParser });
  const asked = other.syntaxError("duckdb", "selec 1").catch(String);
  await other.close();
  expect(await asked).toContain("not opened 3");
  await expect(other.get("duckdb").health()).rejects.toThrow("The engine `duckdb` is closed.");
});
