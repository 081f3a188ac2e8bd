/** Merged catalogues: all names are there, and none twice. */
import { describe, expect, test } from "vitest";
import { CATALOGUE } from "../modules.ts";
import { type Catalogue, mergeCatalogues } from "./catalogue.ts";
import { trueOrFalse } from "./config/kinds.ts";

const apples: Catalogue = {
  name: "apples",
  settings: { peel: { env: "MILLRACE_PEEL", flag: "peel", kind: trueOrFalse, description: "Whether to peel." } },
  errors: { APPLE_NOT_FOUND: { status: 404, sentence: "There is no apple {id}." } },
  metrics: { millrace_apples_total: { kind: "counter", help: "Apples.", labels: [] } },
  scopes: { "apple:read": {} },
  tags: { apples: "Apples" },
};

test("has the names of the kernel and of each module", () => {
  const merged = mergeCatalogues([apples, { name: "plums", scopes: { "plum:read": {} } }]);
  expect(Object.keys(merged.errors)).toEqual(expect.arrayContaining(["VALIDATION_FAILED", "APPLE_NOT_FOUND"]));
  expect(Object.keys(merged.metrics)).toEqual(
    expect.arrayContaining(["millrace_db_connections", "millrace_apples_total"]),
  );
  expect(Object.keys(merged.scopes)).toEqual(["apple:read", "plum:read", "admin"]);
  expect(Object.keys(merged.tags)).toEqual(["apples", "admin", "server"]);
  const { server, client } = merged.settings;
  expect(server.map(({ env }) => env)).toEqual(expect.arrayContaining(["MILLRACE_PORT", "MILLRACE_PEEL"]));
  expect(client.map(({ env }) => env)).toEqual(["MILLRACE_URL", "MILLRACE_KEY"]);
  expect(server.find(({ flag }) => flag === "anonymous-scopes")?.kind.accepts).toBe(
    "a comma list of apple:read, plum:read, admin",
  );
});

test("of Millrace itself has no name twice, and error codes in one form", () => {
  expect(Object.keys(CATALOGUE.errors).filter((code) => !/^[A-Z][A-Z_]+$/.test(code))).toEqual([]);
  expect(Object.keys(CATALOGUE.scopes).filter((scope) => !/^[a-z]+:[a-z]+$|^admin$/.test(scope))).toEqual([]);
});

describe("a name that two catalogues declare is refused with both of them:", () => {
  const peel = { kind: trueOrFalse, description: "Whether to peel." };
  test.each<[word: string, Catalogue]>([
    ["error APPLE_NOT_FOUND", { name: "plums", errors: apples.errors ?? {} }],
    ["metric millrace_apples_total", { name: "plums", metrics: apples.metrics ?? {} }],
    ["scope apple:read", { name: "plums", scopes: apples.scopes ?? {} }],
    ["tag apples", { name: "plums", tags: { apples: "Other apples" } }],
    ["environment variable MILLRACE_PEEL", { name: "plums", settings: { skin: { ...peel, env: "MILLRACE_PEEL" } } }],
    ["flag peel", { name: "plums", settings: { skin: { ...peel, env: "MILLRACE_SKIN", flag: "peel" } } }],
    ["key source ORCHARD", { name: "plums", keySources: ["ORCHARD"] }],
  ])("%s", (word, plums) => {
    const orchard = { ...apples, keySources: ["ORCHARD"] };
    expect(() => mergeCatalogues([orchard, plums])).toThrow(`the ${word} is declared twice: by apples and by plums`);
  });

  test("module apples", () => {
    expect(() => mergeCatalogues([apples, { name: "apples" }])).toThrow(
      "the module apples is declared twice: by apples and by apples",
    );
  });

  test.each<[word: string, Catalogue]>([
    ["error INTERNAL", { name: "apples", errors: { INTERNAL: { status: 500, sentence: "No." } } }],
    [
      "metric millrace_db_connections",
      {
        name: "apples",
        metrics: { millrace_db_connections: { kind: "gauge", help: "Mine.", labels: [] } },
      },
    ],
    ["scope admin", { name: "apples", scopes: { admin: {} } }],
    ["tag server", { name: "apples", tags: { server: "Mine" } }],
    ["flag url", { name: "apples", settings: { url: { ...peel, env: "MILLRACE_APPLE_URL", flag: "url" } } }],
    ["environment variable DATABASE_URL", { name: "apples", settings: { url: { ...peel, env: "DATABASE_URL" } } }],
  ])("%s, which the kernel has", (word, module) => {
    expect(() => mergeCatalogues([module])).toThrow(`the ${word} is declared twice: by the kernel and by apples`);
  });
});
