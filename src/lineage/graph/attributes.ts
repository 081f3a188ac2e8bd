/**
 * Decides which of several asserted values of an attribute holds, in whatever order they arrive: the newest, and of two of
 * one moment the one with the greater text. Two kinds of attributes have further rules:
 *
 *     type of a column    engines name one type `string` and `varchar`, and list the columns that they read in an order of
 *                         their own: the catalog outranks writers of the table, and writers outrank readers
 *     properties          asserted as a whole or one by one: the newest whole holds, with every member set or removed since
 *
 * The times of an asset are kept by attribute. A rank or hash that decides where times do not is kept beside them under the
 * name in brackets, which no attribute has.
 */

import { canonicalJson } from "../../kernel/json/canonical.ts";
import { isRecord } from "../../kernel/json/is-record.ts";
import type { AttributeValue, Rank } from "./facts.ts";
import { hashUuid } from "./hash-uuid.ts";

/** The attributes of an asset, and when each was asserted. */
export interface AttributeState {
  attributes: Record<string, AttributeValue>;
  times: Record<string, number>;
}

export interface Provenance {
  at: number;
  rank: Rank;
  /** Whether a newer time is kept although the value is the same. */
  keepsTimes: boolean;
}

export interface Verdict {
  changed: boolean;
  /** It contradicts a value whose time may be too old: every assertion about the asset has to decide. */
  disputed: boolean;
}

const RANKED: ReadonlySet<string> = new Set(["dataType", "fields", "position"]);
/** Attributes that are objects, whose members are also asserted one by one. */
const WITH_MEMBERS: ReadonlySet<string> = new Set(["properties"]);
const RANK_HEX = 12;

/** One text for one value, whatever the order of keys: Postgres keeps its own. */
export function textOf(value: AttributeValue | undefined): string {
  if (value === undefined) return "null";
  return typeof value === "object" && value !== null ? canonicalJson(value) : JSON.stringify(value);
}

/** A number that orders texts, for those of one moment. */
export function hashRank(text: string): number {
  return Number.parseInt(hashUuid(text).replaceAll("-", "").slice(0, RANK_HEX), 16);
}

/** Whether the present value holds against any value of this rank. */
export function outranks({ times }: AttributeState, attribute: string, rank: Rank): boolean {
  return RANKED.has(attribute) && rankOf(times, attribute) > rank;
}

/** Sets the value if it holds. */
export function setAttribute(
  state: AttributeState,
  attribute: string,
  value: AttributeValue,
  provenance: Provenance,
): Verdict {
  if (WITH_MEMBERS.has(attribute)) return setWhole(state, attribute, value, provenance);
  const { attributes, times } = state;
  const { at, keepsTimes } = provenance;
  const since = times[attribute];
  const [text, current] = [textOf(value), textOf(attributes[attribute])];
  const rank = RANKED.has(attribute) ? provenance.rank : 0;
  const former = RANKED.has(attribute) ? rankOf(times, attribute) : 0;
  const isEqual = since !== undefined && rank === former;
  const disputed = isEqual && text !== current;
  const isLesser =
    since !== undefined && (former > rank || (isEqual && (since > at || (since === at && current >= text))));
  if (isLesser || (isEqual && text === current && !keepsTimes)) return { changed: false, disputed };
  times[attribute] = at;
  if (rank > 0) times[bracketed(attribute)] = rank;
  put(attributes, attribute, value);
  return { changed: true, disputed };
}

/** Sets all members: those that the value lacks are removed, unless they were set since. */
function setWhole(
  { attributes, times }: AttributeState,
  attribute: string,
  value: AttributeValue,
  provenance: Provenance,
): Verdict {
  const { at, keepsTimes } = provenance;
  const since = times[attribute];
  const [text, current] = [textOf(value), textOf(attributes[attribute])];
  const prefix = `${attribute}/`;
  const single = Object.keys(times).filter((key) => key.startsWith(prefix));
  const isKnown = since !== undefined || single.length > 0;
  const disputed = isKnown && text !== current;
  if (since !== undefined && text === current && !keepsTimes) return { changed: false, disputed };
  const order = hashRank(text);
  const former = times[bracketed(attribute)] ?? 0;
  if (since !== undefined && (since > at || (since === at && former >= order))) return { changed: false, disputed };
  const members = new Map(membersOf(value));
  const now = new Map(membersOf(attributes[attribute]));
  for (const key of single) {
    const member = key.slice(prefix.length);
    if ((times[key] ?? 0) < at) delete times[key];
    else if (now.has(member)) members.set(member, now.get(member) ?? null);
    else members.delete(member);
  }
  times[attribute] = at;
  times[bracketed(attribute)] = order;
  put(attributes, attribute, Object.fromEntries(members)); // As entries: a property may be named `__proto__`.
  return { changed: true, disputed };
}

/** Sets one member of an attribute that is an object; null removes it. */
export function setMember(
  { attributes, times }: AttributeState,
  [attribute, member]: readonly [attribute: string, member: string],
  value: AttributeValue,
  at: number,
): Verdict {
  const key = `${attribute}/${member}`;
  const members = new Map(membersOf(attributes[attribute]));
  const [text, current] = [textOf(value), textOf(members.get(member))];
  const [since, whole] = [times[key], times[attribute]];
  const disputed = text !== current && (since !== undefined || whole !== undefined);
  if (whole !== undefined && whole > at) return { changed: false, disputed };
  if (since !== undefined && (since > at || (since === at && current >= text))) return { changed: false, disputed };
  times[key] = at;
  if (value === null) members.delete(member);
  else members.set(member, value);
  put(attributes, attribute, Object.fromEntries(members));
  return { changed: true, disputed };
}

function membersOf(value: AttributeValue | undefined): [string, AttributeValue][] {
  return isRecord(value) ? Object.entries(value) : [];
}

function put(attributes: Record<string, AttributeValue>, attribute: string, value: AttributeValue): void {
  if (value === null) delete attributes[attribute];
  else attributes[attribute] = value;
}

/** Values that were stored before ranks were kept count as a reader's, until their events are read again. */
function rankOf(times: AttributeState["times"], attribute: string): number {
  return times[bracketed(attribute)] ?? 0;
}

const bracketed = (attribute: string): string => `(${attribute})`;
