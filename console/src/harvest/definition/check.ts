/** Checks a text by the server while a person types: whether it can be used, and what applying it would change. */
import { act } from "../../api/client.ts";
import { serverClock } from "../../api/clock.ts";
import { type Check, useCheck } from "../../parts/editor/use-check.ts";
import { paths } from "../api.ts";

export interface Problem {
  reason: string;
  path: readonly string[];
}
interface Validated {
  valid: boolean;
  problems: readonly Problem[];
  warnings: readonly Problem[];
  endpoints: readonly { endpoint: string; needs: readonly string[] }[];
}
export interface Difference {
  outcome: "created" | "changed" | "unchanged";
  changes: readonly { field: string; from?: unknown; to?: unknown }[];
}

export interface Checked extends Validated {
  /** Null while the definition cannot be used. */
  difference: Difference | null;
  at: string;
}

type Value = Readonly<Record<string, unknown>>;

/** Without a value there is nothing to ask. */
export function useDefinitionCheck(value: Value | undefined, baseUrl: string | null): Check<Checked> {
  return useCheck(["source check", baseUrl], value, async (asked) => {
    const validated = await act<Validated>(paths.validate(baseUrl), "POST", asked);
    const difference = validated.valid ? await act<Difference>(paths.diff(baseUrl), "POST", asked) : null;
    return { ...validated, difference, at: new Date(serverClock.now()).toISOString() };
  });
}
