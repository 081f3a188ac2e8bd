/** `millrace harvest ...`: sources, defined in files, and what is harvested from them. */
import type { Family } from "../common/command.ts";
import { check } from "./check.ts";
import { control } from "./control.ts";
import { cursors } from "./cursors.ts";
import { definitions } from "./definitions.ts";
import { lists } from "./lists.ts";
import { pauses } from "./pauses.ts";
import { planning } from "./plan.ts";
import { records } from "./records.ts";
import { status } from "./status.ts";
import { why } from "./why.ts";

export const harvest: Family = {
  summary: "Define sources, harvest them, and read their records",
  details: `A source is defined in a YAML file: its address, its endpoints and how each is asked, paged and read.
The JSON Schema of such a file is at /api/v1/harvest/definition.schema.json of the server, for editors.

A plan harvests a window of time in slices, each a task. When all slices of a day are complete, the day lands as a partition of a table
in the lake, which is an arrival.`,
  commands: { ...definitions, ...planning, ...control, ...pauses, check, status, why, ...cursors, ...lists, records },
};
