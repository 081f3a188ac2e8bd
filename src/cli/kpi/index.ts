/** `millrace kpi ...`: models that wait for tables, and the indicators that they compute. */
import type { Family } from "../common/command.ts";
import { apply } from "./apply.ts";
import { control } from "./control.ts";
import { lists } from "./lists.ts";
import { readiness } from "./readiness.ts";
import { why } from "./why.ts";

export const kpi: Family = {
  summary: "Define models and indicators, and see their state and values",
  details: `A model waits for tables and runs once all of them have arrived for an opTime (\`millrace arrive\`). It computes values
of indicators.`,
  commands: { apply, why, readiness, ...control, ...lists },
};
