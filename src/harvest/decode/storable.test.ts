import fc from "fast-check";
import { expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { compileDecoder } from "./index.ts";
import { endpointSpec } from "./spec.fixture.ts";

const database = useDatabase();
const decoder = compileDecoder(endpointSpec({ response: { itemsPath: "$", idPath: "$.id", versionPath: "$.v" } }));

test("Postgres accepts every record that is decoded, and reads its values", async () => {
  const text = fc.string({
    unit: fc.oneof(
      fc.constantFrom("\0", "\ud800", "\udc00", "\\", '"', "u0000", "\u{1f600}"),
      fc.string({ maxLength: 1 }),
    ),
  });
  const item = fc.record({
    id: text,
    v: text,
    more: fc.dictionary(text, fc.oneof(text, fc.bigInt().map(String), fc.double())),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(item, { minLength: 50, maxLength: 100 }), async (items) => {
      const body = Buffer.from(JSON.stringify(items));
      const { page } = decoder.read({ status: 200, headers: {}, body, attempt: 1 });
      const texts = page!.items.flatMap((outcome) =>
        "key" in outcome
          ? [outcome.dataJson, JSON.stringify([outcome.key, outcome.providerVersion])]
          : [JSON.stringify([outcome.quarantine.fragment, outcome.quarantine.key, outcome.quarantine.reason])],
      );
      const rows = await database.query<{ kept: boolean }>(
        "select (data::json)::text = data and data::jsonb is not null as kept from unnest($1::text[]) data",
        [texts],
      );
      expect(rows.filter(({ kept }) => kept).length).toBe(texts.length);
    }),
    { numRuns: 10 },
  );
});
