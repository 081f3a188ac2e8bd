/** `millrace chain ...`: defines chains from files, and starts, watches and controls their runs. */

import type { Family } from "../common/command.ts";
import { apply } from "./apply.ts";
import { control } from "./control.ts";
import { lists } from "./lists.ts";
import { logs } from "./logs.ts";
import { start } from "./start.ts";
import { watching } from "./watch.ts";

export const chain: Family = {
  summary: "Define chains of work, run them and watch them run",
  details: `A chain is a DAG of nodes; a run of it has a state for each node. A chain is called by its name or its id.
States of a run: PENDING, RUNNING, SUCCESS, FAILED, STOPPING, STOPPED. A node can also be RETRYING or SKIPPED.`,
  commands: { apply, start, ...watching, ...control, ...lists, logs },
};
