import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { parseRecord } from "./json.ts";
import { compileRecord, type DecodedRecord, type Quarantine } from "./record.ts";
import { endpointSpec, type Given } from "./spec.fixture.ts";

function recordOf(item: unknown, response: Partial<Given["response"]> = {}, outputFields: Given["outputFields"] = []) {
  return compileRecord(endpointSpec({ response: { itemsPath: "$", idPath: "$.id", ...response }, outputFields }))(item);
}
const accepted = (...given: Parameters<typeof recordOf>) => recordOf(...given) as DecodedRecord;
const refused = (...given: Parameters<typeof recordOf>): Quarantine | undefined =>
  (recordOf(...given) as { quarantine?: Quarantine }).quarantine;

describe("the key of a record", () => {
  test.each([
    ["a text", { id: " 10.1/x " }, "$.id", "10.1/x"],
    ["a number", { id: 38785209 }, "$.id", "38785209"],
    ["a number beyond 2^53", parseRecord('{"id": 9007199254740993}'), "$.id", "9007199254740993"],
    ["an element with an attribute", { PMID: [{ "@Version": "1", "#text": "2" }] }, "$.PMID[0]", "2"],
    ["the item itself", "41843416", "$", "41843416"],
  ])("is %s", (_, item, idPath, key) => {
    expect(accepted(item, { idPath }).key).toBe(key);
  });

  test.each([[null], [{}], [{ id: null }], [{ id: "  " }], [{ id: [] }], [{ id: {} }]])("is missing in %j", (item) => {
    expect(refused(item)).toMatchObject({
      code: "MISSING_ID",
      expression: "$.id",
      key: null,
      fragment: JSON.stringify(item),
    });
  });

  test("is made of several paths where the id alone is not unique", () => {
    const keyPaths = ["$.source", "$.id"];
    expect(accepted({ id: 7, source: "MED" }, { keyPaths }).key).toBe("MED:7");
    expect(accepted({ id: 7, source: "PPR" }, { keyPaths }).key).toBe("PPR:7");
    expect(refused({ id: 7 }, { keyPaths })).toMatchObject({ code: "MISSING_ID", expression: "$.source", key: null });
  });

  test.each(["x".repeat(1_025), "語".repeat(700)])("is not longer than an index can hold", (id) => {
    expect(refused({ id })).toMatchObject({ code: "TOO_LARGE", key: null });
  });
});

describe("the time of a record", () => {
  test.each([
    ["iso", "2024-09-04T22:59:26Z", "2024-09-04T22:59:26.000Z"],
    ["iso", "2026-08-20T03:11:22.180390", "2026-08-20T03:11:22.180Z"],
    ["iso", "2026-08-20T03:11:22+02:00", "2026-08-20T01:11:22.000Z"],
    ["iso", "2026-08-20 03:11", "2026-08-20T03:11:00.000Z"],
    ["iso", "2026-08-20", "2026-08-20T00:00:00.000Z"],
    ["iso", "2026-08", "2026-08-01T00:00:00.000Z"],
    ["iso", 2026, "2026-01-01T00:00:00.000Z"],
    ["epochMs", 1725490766949, "2024-09-04T22:59:26.949Z"],
    ["epochMs", "1725490766949", "2024-09-04T22:59:26.949Z"],
    ["epochSeconds", 1725490766.949, "2024-09-04T22:59:26.949Z"],
    ["parts", { Year: ["2026"], Month: ["08"], Day: ["20"] }, "2026-08-20T00:00:00.000Z"],
    ["parts", { Year: ["2024"], Month: ["Jul"] }, "2024-07-01T00:00:00.000Z"],
    ["parts", { Year: 2024, Month: 2, Day: 29 }, "2024-02-29T00:00:00.000Z"],
  ] as const)("is read as %s from %j", (updatedAtFormat, time, expected) => {
    const { sourceTime } = accepted({ id: 1, time }, { updatedAtPath: "$.time", updatedAtFormat });
    expect(sourceTime?.toISOString()).toBe(expected);
  });

  test.each([
    ["iso", "2026-02-30"],
    ["iso", "2026-13-01"],
    ["iso", "yesterday"],
    ["iso", "0000-01-01"],
    ["iso", []],
    ["epochMs", 1e300],
    ["epochMs", "2026-08-20"],
    ["parts", { Year: ["2020 Jan-Feb"] }],
    ["parts", { Month: ["08"] }],
    ["parts", "2026"],
  ] as const)("in the format %s is not %j", (updatedAtFormat, time) => {
    expect(refused({ id: 1, time }, { updatedAtPath: "$.time", updatedAtFormat })).toMatchObject({
      code: "BAD_TIME",
      expression: "$.time",
      key: "1",
    });
  });

  test.each([{ id: 1 }, { id: 1, time: null }, { id: 1, time: "" }])("may be missing, as in %j", (item) => {
    expect(accepted(item, { updatedAtPath: "$.time" }).sourceTime).toBeNull();
  });
});

describe("a deleted record", () => {
  const oai = {
    idPath: "$.header[0].identifier[0]",
    deletedPath: "$.header[0]['@status']",
    deletedValues: ["deleted"],
    requiredPaths: ["$.metadata[0]"],
  };

  test("is one whose status says so, and needs nothing but its id", () => {
    const header = { "@status": "deleted", identifier: ["oai:x:1"] };
    expect(accepted({ header: [header] }, oai)).toMatchObject({ key: "oai:x:1", deleted: true });
    const other = { header: [{ ...header, "@status": "other" }] };
    expect(refused(other, oai)).toMatchObject({ code: "MISSING_FIELD", expression: "$.metadata[0]" });
    expect(accepted({ ...other, metadata: ["m"] }, oai).deleted).toBe(false);
  });

  test.each([
    [true, true],
    ["2026-01-01", true],
    [false, false],
    ["false", false],
    [null, false],
    [0, false],
  ])("without a list of values: %j means %j", (gone, deleted) => {
    expect(accepted({ id: 1, gone }, { deletedPath: "$.gone" }).deleted).toBe(deleted);
  });
});

describe("a record goes to quarantine", () => {
  const type = { name: "type", path: "$.types[*]", type: "string", required: true, enum: ["a", "b"] } as const;

  test.each([
    [{ id: 1 }, { code: "MISSING_FIELD", expression: "$.types[*]" }],
    [{ id: 1, types: [null, ""] }, { code: "MISSING_FIELD" }],
    [
      { id: 1, types: ["a", "c"] },
      { code: "ILLEGAL_VALUE", reason: 'the field type has the value "c", which is not one of its enum' },
    ],
    [{ id: 1, types: [{ x: 1 }] }, { code: "ILLEGAL_VALUE" }],
  ])("%j", (item, expected) => {
    expect(refused(item, {}, [{ ...type, enum: [...type.enum] }])).toMatchObject({ ...expected, key: "1" });
  });

  test("with the start of what it is", () => {
    const quarantine = refused({ text: "x".repeat(5_000) });
    expect(quarantine?.fragment).toHaveLength(2_000);
  });

  test("that is too large", () => {
    expect(refused({ id: 1, text: "x".repeat(16_000_000) })).toMatchObject({ code: "TOO_LARGE", key: "1" });
  });
});

describe("the content of a record", () => {
  test("is its JSON text, and the hash the first half of a sha256 of it", () => {
    const item = { id: 1, title: ["é"] };
    const { dataJson, contentHash } = accepted(item);
    expect(JSON.parse(dataJson)).toEqual(item);
    expect(contentHash).toEqual(createHash("sha256").update(dataJson).digest().subarray(0, 16));
  });

  const hashOf = (item: unknown, ignoredPaths: string[]) =>
    accepted(item, { ignoredPaths }).contentHash.toString("hex");

  test.each([
    ["$.score", { id: 1, score: 5 }, { id: 1, score: 6 }],
    ["$.a.b", { id: 1, a: { b: 5, c: 1 } }, { id: 1, a: { b: { x: 1 }, c: 1 } }],
    ["$.list[*].n", { id: 1, list: [{ n: 1 }, { n: 2 }] }, { id: 1, list: [{ n: 3 }, { n: 4 }] }],
    ["$..n", { id: 1, list: [{ n: 1 }] }, { id: 1, list: [{ n: 3 }] }],
  ])("without %s is the same", (path, one, other) => {
    expect(hashOf(one, [path])).toBe(hashOf(other, [path]));
    expect(hashOf(one, [])).not.toBe(hashOf(other, []));
  });

  test("keeps what the hash ignores", () => {
    const item = { id: 1, score: 5, a: { score: 1 } };
    expect(JSON.parse(accepted(item, { ignoredPaths: ["$.score", "$..score", "$.a"] }).dataJson)).toEqual(item);
    expect(item).toEqual({ id: 1, score: 5, a: { score: 1 } });
  });

  test("tells versions apart", () => {
    expect(accepted({ id: 1, v: 2 }, { versionPath: "$.v" }).providerVersion).toBe("2");
    expect(accepted({ id: 1 }, { versionPath: "$.v" }).providerVersion).toBeNull();
  });
});
