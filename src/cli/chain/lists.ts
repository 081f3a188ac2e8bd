/** `millrace chain ls` and `runs`: lists of chains and runs. */

import { clientCommand, serverCommand } from "../common/client-command.ts";
import { table, toSeconds } from "../common/output.ts";
import { listing, PAGE_FLAGS, type Page, pageOf } from "../common/paging.ts";
import { type ChainSummary, chainIdOf, type Run } from "./api.ts";
import { durationOf, inOneLine } from "./run-text.ts";

const ls = clientCommand<Page<ChainSummary>>({
  summary: "List chains, with the last run of each",
  args: "",
  flags: [{ usage: "--q <text>", description: "Chains whose names contain this." }, ...PAGE_FLAGS],
  examples: ["millrace chain ls", "millrace chain ls --q daily"],
  request: (given) => ({
    method: "GET",
    path: "api/v1/chains",
    query: { keyword: given.maybeText("--q"), ...pageOf(given) },
  }),
  show: (page) =>
    listing(page, "chain", () =>
      table(
        ["NAME", "ENABLED", "VERSION", "NODES", "LAST RUN", "STATUS", "LAST RUN AT"],
        page.items.map(({ name, enabled, version, nodeCount, lastRun }) => [
          name,
          enabled ? "yes" : "no",
          version,
          nodeCount,
          lastRun?.runId,
          lastRun?.status,
          toSeconds(lastRun?.createdAt),
        ]),
      ),
    ),
});

const runs = serverCommand<Page<Run>>({
  summary: "List runs, newest first",
  details: "NAME is the name or the id of a chain; without it the runs of all chains are listed.",
  args: "[NAME]",
  flags: [
    {
      usage: "--status <status>",
      description: "Runs that are PENDING, RUNNING, SUCCESS, FAILED, STOPPING or STOPPED.",
    },
    { usage: "--op-time <time>", description: "Runs with this opTime." },
    ...PAGE_FLAGS,
  ],
  examples: ["millrace chain runs daily", "millrace chain runs --status FAILED"],
  async execute(client, given) {
    const name = given.maybeText("NAME");
    return client.call<Page<Run>>({
      method: "GET",
      path: "api/v1/runs",
      query: {
        chainId: name === undefined ? undefined : await chainIdOf(client, name),
        status: given.maybeText("--status")?.toUpperCase(),
        opTime: given.maybeText("--op-time"),
        ...pageOf(given),
      },
    });
  },
  show: (page) =>
    listing(page, "run", () =>
      table(
        ["RUN", "CHAIN", "STATUS", "OPTIME", "STARTED", "DURATION", "REASON"],
        page.items.map((run) => [
          run.runId,
          run.jobName,
          run.status,
          run.opTime ?? undefined,
          toSeconds(run.startedAt),
          durationOf(run, Date.now()),
          inOneLine(run.reason),
        ]),
      ),
    ),
});

export const lists = { ls, runs };
