/** The commands of `millrace pipeline` for queues: list, claim, heartbeat, release. */
import { pathTo } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, printNote, table, toSeconds } from "../common/output.ts";

const queue = clientCommand<{ stage: string; items: { filename: string; shard: number; created_at: string }[] }>({
  summary: "List the items that are ready for a stage, oldest first",
  args: "STAGE",
  flags: [
    { usage: "--limit <number>", description: "At most this many (default 100, at most 1000)." },
    { usage: "--offset <number>", description: "Skip this many." },
  ],
  examples: ["millrace pipeline queue shard-worker --limit 10"],
  request: (given) => ({
    method: "GET",
    path: pathTo`api/v1/pipeline/queues/${given.text("STAGE")}`,
    query: { limit: given.maybeNumber("--limit"), offset: given.maybeNumber("--offset") },
  }),
  show: ({ stage, items }) =>
    items.length === 0
      ? `Nothing is ready for ${stage}.`
      : table(
          ["FILE", "SHARD", "CREATED"],
          items.map((item) => [item.filename, item.shard, toSeconds(item.created_at)]),
        ),
});

const LEASE: Flag = {
  usage: "--lease <seconds>",
  description: "How long the lease lasts without a heartbeat (default 60).",
};

const claim = clientCommand<{ items: { filename: string; shard: number; fence: string }[] }>({
  summary: "Start items and hold them under a lease",
  details: `Prints one line for each item: file name, shard and fence, separated by tabs. A file name contains no tab.
No other worker gets the item until its lease expires; heartbeats extend it. The fence proves that you hold
the item: done, fail, heartbeat and release need it. Exits with 7 if there was nothing to claim.`,
  args: "STAGE",
  flags: [
    {
      usage: "--worker <name>",
      description: "The name of this worker, shown with the items that it holds.",
      required: true,
    },
    { usage: "--limit <number>", description: "At most this many items (default 1, at most 1000)." },
    LEASE,
    { usage: "--wait <seconds>", description: "How long to wait for work if there is none (default 0, at most 60)." },
  ],
  examples: [
    "millrace pipeline claim shard-worker --worker w1 --wait 30",
    "millrace pipeline claim shard-worker --worker w1 --limit 10 --json | jq -r '.items[].filename'",
  ],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/pipeline/queues/${given.text("STAGE")}/claim`,
    body: {
      worker: given.text("--worker"),
      limit: given.maybeNumber("--limit"),
      lease_seconds: given.maybeNumber("--lease"),
      wait_seconds: given.maybeNumber("--wait"),
    },
    waitSeconds: given.maybeNumber("--wait") ?? 0,
  }),
  show({ items }) {
    if (items.length === 0) printNote("There is nothing to claim.");
    // Not escaped, because a script sends them back; the server allows no control characters in names.
    return items.map(({ filename, shard, fence }) => `${filename}\t${shard}\t${fence}`).join("\n");
  },
  exitCode: ({ items }) => (items.length === 0 ? EXIT.nothingToClaim : EXIT.ok),
});

const FENCE: Flag = { usage: "--fence <fence>", description: "The fence that the claim returned.", required: true };

function heldItem(given: Given) {
  return { filename: given.text("FILE"), shard: given.number("SHARD"), fence: given.text("--fence") };
}

const heartbeat = clientCommand({
  summary: "Extend the lease of a claimed item",
  details: "Exits with 3 if the lease is lost: then stop working on the item.",
  args: "STAGE FILE SHARD",
  flags: [FENCE, LEASE],
  examples: ["millrace pipeline heartbeat shard-worker orders-2025-01-01.csv 3 --fence 1042"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/pipeline/queues/${given.text("STAGE")}/heartbeat`,
    body: { items: [heldItem(given)], lease_seconds: given.maybeNumber("--lease") },
  }),
  show: (_reply, given) => `${nameOf(given)} is still leased to you.`,
});

const release = clientCommand({
  summary: "Give a claimed item back to the queue",
  args: "STAGE FILE SHARD",
  flags: [FENCE],
  examples: ["millrace pipeline release shard-worker orders-2025-01-01.csv 3 --fence 1042"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/pipeline/queues/${given.text("STAGE")}/release`,
    body: { items: [heldItem(given)] },
  }),
  show: (_reply, given) => `${nameOf(given)} is back in the queue of ${printable(given.text("STAGE"))}.`,
});

function nameOf(given: Given): string {
  return `${printable(given.text("FILE"))}, shard ${given.number("SHARD")},`;
}

export const queues = { queue, claim, heartbeat, release };
