/** The differences between two definitions, field by field. A list that differs is one difference, as in a policy, where it replaces the other. */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "./is-record.ts";
import { written } from "./schema-errors.ts";

export interface FieldDifference {
  /** Where: `endpoints.works.pagination.pageSize`. */
  field: string;
  /** Absent where the field is new. */
  from?: unknown;
  /** Absent where the field is removed. */
  to?: unknown;
}

/** In the order of `to`, then what is only in `from`. */
export function differences(from: object, to: object): FieldDifference[] {
  return below([], from as Record<string, unknown>, to as Record<string, unknown>);
}

function below(path: readonly string[], from: Record<string, unknown>, to: Record<string, unknown>): FieldDifference[] {
  const names = [...Object.keys(to), ...Object.keys(from).filter((name) => !Object.hasOwn(to, name))];
  return names.flatMap((name): FieldDifference[] => {
    const steps = [...path, name];
    const before = Object.hasOwn(from, name) ? from[name] : undefined;
    const after = Object.hasOwn(to, name) ? to[name] : undefined;
    if (isRecord(before) && isRecord(after)) return below(steps, before, after);
    if (isDeepStrictEqual(before, after)) return [];
    return [
      {
        field: written(steps),
        ...(before === undefined ? {} : { from: before }),
        ...(after === undefined ? {} : { to: after }),
      },
    ];
  });
}
