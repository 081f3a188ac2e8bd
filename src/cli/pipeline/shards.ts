/** Parses a set of shards: `0,1,4-7`. */
import { OperatorError } from "../../kernel/errors.ts";
import { EXIT } from "../common/exit-codes.ts";

/** The limit of the server for one call. Checked here, so that a range such as `0-2000000000` does not fill the memory. */
const SHARDS_MAX = 10_000;

export function parseShards(text: string): number[] {
  const shards = new Set<number>();
  for (const part of text.split(",")) {
    const [, first, last = first] = /^\s*(\d{1,10})(?:-(\d{1,10}))?\s*$/.exec(part) ?? [];
    if (first === undefined) throw refusal(`\`${part}\` is neither a shard nor a range.`);
    if (Number(last) < Number(first)) throw refusal(`The range \`${part}\` ends before it begins.`);
    if (Number(last) - Number(first) >= SHARDS_MAX) throw tooMany();
    for (let shard = Number(first); shard <= Number(last); shard += 1) shards.add(shard);
    if (shards.size > SHARDS_MAX) throw tooMany();
  }
  return [...shards];
}

function tooMany(): OperatorError {
  return refusal(`There are more than ${SHARDS_MAX} shards; register them in several calls.`);
}

function refusal(problem: string): OperatorError {
  return new OperatorError(`${problem} Accepted: shards and ranges like 0,1,4-7.`, EXIT.usage);
}
