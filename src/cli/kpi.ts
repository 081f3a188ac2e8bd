/** `millrace kpi ...`: models that wait for tables, and the indicators that they bring. */
import type { Family } from "./command.ts";
import { apply } from "./kpi-apply.ts";
import { control } from "./kpi-control.ts";
import { lists } from "./kpi-lists.ts";
import { readiness } from "./kpi-readiness.ts";
import { why } from "./kpi-why.ts";

export const kpi: Family = {
  summary: "Define models and indicators, see what they wait for, and what they brought",
  details: `A model waits for tables and runs once all of them have arrived for an opTime (\`millrace arrive\`); what it brings
are values of indicators.`,
  commands: { apply, why, readiness, ...control, ...lists },
};
