/** `millrace pipeline ...`: files in the stages of the pipeline, for people and for workers written as shell scripts. */
import type { Family } from "../common/command.ts";
import { files } from "./files.ts";
import { moves } from "./moves.ts";
import { queues } from "./queues.ts";
import { work } from "./work.ts";

export const pipeline: Family = {
  summary: "Track files, shard by shard, through the stages of the pipeline",
  details: `Stages: event-ingest (of the whole file), then shard-splitter, shard-worker, mysql-sender (of each shard).
Statuses: new, started, done, failed.

A worker as a bash script:

  set -o pipefail
  while true; do
    millrace pipeline claim shard-worker --worker w1 --wait 30 |
      while IFS=$'\\t' read -r file shard fence; do
        if ./load.sh "$file" "$shard" </dev/null
        then millrace pipeline done shard-worker "$file" "$shard" --fence "$fence"
        else millrace pipeline fail shard-worker "$file" "$shard" --fence "$fence" --error "load.sh failed"
        fi
      done || sleep 1
  done

\`millrace pipeline work\` does the same with heartbeats, failures and a graceful stop.`,
  commands: { ...files, ...queues, ...moves, work },
};
