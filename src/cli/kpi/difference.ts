/** The difference between a file and the server, as text to confirm. */

import { type FieldChange, fieldLines } from "../common/field-changes.ts";
import { paint, printable, type Style } from "../common/output.ts";
import type { Change } from "./plan.ts";

const STYLES = {
  create: "green",
  change: "yellow",
  publish: "green",
  unpublish: "yellow",
  unchanged: "dim",
} as const satisfies Record<Change["action"], Style>;

export function differenceText(changes: readonly Change[]): string {
  const width = Math.max(...changes.map(({ action }) => action.length));
  return changes
    .flatMap(({ action, kind, name, fields }) => [
      `${paint(STYLES[action], action.padEnd(width))}  ${kind} ${printable(name)}`,
      ...(action === "change" ? fields : []).flatMap(linesOf).map((line) => `${" ".repeat(width + 4)}${line}`),
    ])
    .join("\n");
}

function linesOf(change: FieldChange): string[] {
  return change.field === "secret" ? ["secret (not shown)"] : fieldLines(change);
}
