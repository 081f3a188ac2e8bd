/** What was left out of the graph when an event was applied, and why: extracted from the stored event again. */
import type { Db, Queryable } from "../../kernel/data/db.ts";
import { ApiError } from "../../kernel/errors.ts";
import { factsOf, type Source } from "../extract/index.ts";
import { createNameHistory } from "../graph/name-history.ts";
import { type AssetName, keyOf } from "../graph/names.ts";
import { type Doubt, resolveAliases } from "../graph/resolve.ts";
import { type ParsedEvent, parseEvent } from "../ingest/event.ts";
import { fullName } from "./shown.ts";

interface Stored {
  body: string;
  /** Microseconds. */
  at: string;
  source: string;
}

/** Each as one sentence. */
export async function warningsOf(db: Db, tenantId: string, { body, at, source }: Stored): Promise<string[]> {
  const event = eventIn(body);
  if (!event) return [];
  const { warnings, endings } = factsOf(event, source as Source);
  const reported = endings.filter((ending) => ending.reported);
  if (reported.length === 0) return [...warnings];
  const reader: Queryable = { rows: (statement, values) => db.read(statement, values) };
  const history = createNameHistory(reader, tenantId);
  await history.load(reported.flatMap(({ name, to }) => (to ? [name, to] : [name])));
  const doubted = reported.flatMap(({ name, to }) => {
    const known = history.endings.get(keyOf(resolveAliases(name, history.aliases)));
    const target = to && keyOf(resolveAliases(to, history.aliases));
    const doubt = known?.find(
      (ending) => ending.at === Number(at) && ending.to && keyOf(resolveAliases(ending.to, history.aliases)) === target,
    )?.doubt;
    return to && doubt ? [sentence(name as AssetName, to, doubt)] : [];
  });
  return [...warnings, ...doubted];
}

/** Nothing if it is none by today's rules. */
function eventIn(body: string): ParsedEvent | undefined {
  try {
    return parseEvent(JSON.parse(body));
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

function sentence(name: AssetName, to: AssetName, doubt: Doubt): string {
  const [from, into] = [fullName(name), fullName(to)];
  const why = doubt === "unknown" ? `nothing is known of ${from} before that` : `${into} existed already`;
  return `The rename from ${from} to ${into} was not applied: ${why}. ${into} keeps its lineage.`;
}
