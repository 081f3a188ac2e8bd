/** Tests of checks: each changes one thing of the good definition, and expects the problem that this makes and no other. */
import { describe, expect, test } from "vitest";
import type { CompileInput } from "./compile.ts";
import { draft, problemsOf } from "./definition.fixture.ts";
import { SEEDED_DICTIONARY } from "./dictionary.ts";

/** A change of the good definition, and the problem that it makes. */
interface Bad {
  check: string;
  change: Record<string, unknown>;
  table: string;
  field: string;
  reason: string | RegExp;
  input?: Partial<CompileInput>;
}

export const list = (changes: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(changes).map(([path, value]) => [`endpoints.list.${path}`, value]));
export const twoPhase = { endpointName: "ids" };
export const without = (type: string, code: string) => ({
  dictionary: { ...SEEDED_DICTIONARY, [type]: SEEDED_DICTIONARY[type]!.filter((one) => one !== code) },
});
export const token = {
  "pagination.type": "TOKEN",
  "pagination.tokenClass": "REPEATABLE",
  "pagination.nextTokenPath": "$.next",
  "http.query.offset": undefined,
  "http.query.cursor": "${page.token}",
};
export const key = { "auth.type": "API_KEY", "auth.location": "QUERY", "auth.name": "key", "auth.credential": "key" };

export function testBad(definitions: readonly Bad[]): void {
  describe("a bad definition", () => {
    test.each(
      definitions.map((bad) => [`${bad.check}: ${bad.table} ${bad.field}: ${String(bad.reason)}`, bad] as const),
    )("%s", (_, { change, input, table, field, reason }) => {
      const problem = { table, field, reason: typeof reason === "string" ? reason : expect.stringMatching(reason) };
      expect(problemsOf(draft(change), input)).toEqual([problem]);
    });
  });
}
