import { describe, expect, test } from "vitest";
import { OperatorError } from "../kernel/errors.ts";
import { withCredentials } from "./credentials.ts";
import type { EngineSettings } from "./settings.ts";

const VARIABLES: Readonly<Record<string, string>> = {
  URL: "postgres://etl:pw@db/warehouse",
  PASSWORD: "p@ss/w?rd ",
  TOKEN: "header.body.signature",
  TWO_LINES: "SECRET\n",
  EMPTY: "",
  FILE: "file:///SECRET",
};
const resolve = (setting: EngineSettings) => withCredentials({ dw: setting }, VARIABLES)["dw"];
const TRINO = { kind: "trino", url: "https://trino.internal:8443", user: "etl" } as const;

describe("a reference to a variable", () => {
  test("is replaced by its value, which is escaped inside a URL", () => {
    expect(resolve({ kind: "postgres", url: "${env.URL}" })).toEqual({ kind: "postgres", url: VARIABLES["URL"] });
    expect(resolve({ kind: "postgres", url: "postgres://etl:${env.PASSWORD}@db/${env.TOKEN}" })).toEqual({
      kind: "postgres",
      url: "postgres://etl:p%40ss%2Fw%3Frd%20@db/header.body.signature",
    });
    expect(resolve({ ...TRINO, password: "${env.PASSWORD}" })).toEqual({ ...TRINO, password: "p@ss/w?rd " });
    expect(resolve({ ...TRINO, token: "${env.TOKEN}" })).toEqual({ ...TRINO, token: "header.body.signature" });
  });

  test("is optional", () => {
    const settings: EngineSettings[] = [
      { kind: "duckdb", path: "/data/${env.URL}" },
      { kind: "postgres", url: "postgresql://db/x" },
      TRINO,
      { ...TRINO, url: "http://127.0.0.1:8080/trino/", password: "$ecret" },
    ];
    for (const setting of settings) expect(resolve(setting)).toEqual(setting);
  });

  test.each<[EngineSettings, string]>([
    [{ kind: "postgres", url: "${env.MISSING}" }, "names the environment variable MISSING, which is not set"],
    [{ ...TRINO, password: "${env.EMPTY}" }, "names the environment variable EMPTY, which is not set"],
    [{ ...TRINO, token: "${env.constructor}" }, "names the environment variable constructor"],
    [
      { kind: "postgres", url: "postgres://${URL}@db" },
      "The `url` of the engine `dw` in millrace.yaml has `${` without",
    ],
    [{ ...TRINO, password: "${vault.x}" }, "The `password` of the engine `dw` in millrace.yaml has `${` without"],
  ])("that cannot be resolved stops the start: %j", (setting, sentence) => {
    const start = () => withCredentials({ dw: setting }, VARIABLES);
    expect(start).toThrow(OperatorError);
    expect(start).toThrow(sentence);
  });
});

test.each<[EngineSettings, string]>([
  [{ kind: "postgres", url: "${env.FILE}" }, "begins with neither postgres:// nor postgresql://"],
  [{ ...TRINO, url: "${env.FILE}" }, "is not a URL such as"],
  [{ ...TRINO, url: "https://SECRET:x@trino" }, "has more than a host"],
  [{ ...TRINO, url: "https://trino?token=SECRET" }, "has more than a host"],
  [{ ...TRINO, password: "SECRET", token: "SECRET" }, "is set beside a `password`"],
  [{ ...TRINO, token: "${env.TWO_LINES}" }, "has a space, a line break"],
  [{ ...TRINO, url: "http://trino.internal", password: "SECRET" }, "begins with http://"],
  [{ ...TRINO, url: "http://127.0.0.1.example.com", token: "SECRET" }, "begins with http://"],
])(
  "settings that cannot work, or would reveal a secret, stop the start without printing it: %j",
  (setting, sentence) => {
    expect(() => resolve(setting)).toThrow(OperatorError);
    expect(() => resolve(setting)).toThrow(sentence);
    expect(() => resolve(setting)).not.toThrow("SECRET");
  },
);
