/** The commands of `millrace pipeline` that are about queues: look into one, claim from it, keep and give back what was claimed. */
import { pathTo } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, remark, table, toSeconds } from "../common/output.ts";

const queue = clientCommand<{ stage: string; items: { filename: string; shard: number; created_at: string }[] }>({
  summary: "List what is ready for a stage, oldest first",
  args: "STAGE",
  flags: [
    { usage: "--limit <number>", description: "At most this many (default 100, at most 1000)." },
    { usage: "--offset <number>", description: "Leave out the first ones." },
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
  description: "How long it stays yours without a heartbeat (default 60).",
};

const claim = clientCommand<{ items: { filename: string; shard: number; fence: string }[] }>({
  summary: "Start items and hold them under a lease",
  details: `Prints one line for each item: file name, shard and fence, separated by tabs. A file name holds no tab.
Nobody else gets the item until its lease runs out; heartbeats extend it. The fence is the proof that the
item is yours: done, fail, heartbeat and release ask for it. Exits with 7 when there was nothing to claim.`,
  args: "STAGE",
  flags: [
    { usage: "--worker <name>", description: "Who you are; shown with the items that you hold.", required: true },
    { usage: "--limit <number>", description: "At most this many items (default 1, at most 1000)." },
    LEASE,
    { usage: "--wait <seconds>", description: "Wait so long for work when there is none (default 0, at most 60)." },
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
    if (items.length === 0) remark("There is nothing to claim.");
    // Printed as they are: a script hands them back, and the server lets no control characters into names.
    return items.map(({ filename, shard, fence }) => `${filename}\t${shard}\t${fence}`).join("\n");
  },
  exitCode: ({ items }) => (items.length === 0 ? EXIT.nothingToClaim : EXIT.ok),
});

const FENCE: Flag = { usage: "--fence <fence>", description: "What the claim returned.", required: true };

function heldItem(given: Given) {
  return { filename: given.text("FILE"), shard: given.number("SHARD"), fence: given.text("--fence") };
}

const heartbeat = clientCommand({
  summary: "Extend the lease of a claimed item",
  details: "Exits with 3 when the lease is lost: stop working on the item then.",
  args: "STAGE FILE SHARD",
  flags: [FENCE, LEASE],
  examples: ["millrace pipeline heartbeat shard-worker orders-2025-01-01.csv 3 --fence 1042"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/pipeline/queues/${given.text("STAGE")}/heartbeat`,
    body: { items: [heldItem(given)], lease_seconds: given.maybeNumber("--lease") },
  }),
  show: (_reply, given) => `${nameOf(given)} is still yours.`,
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
