/** `millrace chain ...`: DAGs of work, and their runs: defined from files, started, watched and mended from a terminal. */
import { apply } from "./chain-apply.ts";
import { control } from "./chain-control.ts";
import { lists } from "./chain-lists.ts";
import { logs } from "./chain-logs.ts";
import { start } from "./chain-start.ts";
import { watching } from "./chain-watch.ts";
import type { Family } from "./command.ts";

export const chain: Family = {
  summary: "Define chains of work, run them and watch them run",
  details: `A chain is a DAG of nodes; a run of it has a state for each node. A chain is called by its name or its id.
States of a run: PENDING, RUNNING, SUCCESS, FAILED, STOPPING, STOPPED. A node can also be RETRYING or SKIPPED.`,
  commands: { apply, start, ...watching, ...control, ...lists, logs },
};
