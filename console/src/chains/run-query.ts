/** Parses what a user types in the search: a run id, an opTime, or a chain and an opTime. */

export interface RunQuery {
  /** The beginning of it. */
  id?: string;
  /** A part of its name. */
  chain?: string;
  opTime?: string;
}

/** At least 8 characters, as the API demands: fewer are those of every run of a day. */
const ID = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i;
const PERIOD = /^\d{6,10}$/;
const NAME_AND_OP_TIME = /^(?<chain>.*\S)\s+(?<opTime>\S+)$/;

/** The beginning of an id; an opTime, which can look like one; or a part of a chain's name and an opTime. */
export function parseRunQuery(query: string): readonly RunQuery[] {
  const { chain, opTime } = NAME_AND_OP_TIME.exec(query)?.groups ?? {};
  return [
    ...(ID.test(query) ? [{ id: query.toLowerCase() }] : []),
    ...(PERIOD.test(query) ? [{ opTime: query }] : []),
    ...(chain === undefined || opTime === undefined ? [] : [{ chain, opTime }]),
  ];
}
