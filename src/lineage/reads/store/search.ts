/** SQL for full-text search over assets. */
import type { Db } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { Attributes } from "../../graph/facts.ts";
import { NODE_KINDS, type NodeKind } from "../../graph/names.ts";
import { ATTRIBUTES } from "./attributes.ts";

export interface HitRow {
  id: string;
  kind: NodeKind;
  path: string[];
  attributes: Attributes;
  summary: string | null;
  is_dropped: boolean;
}

// A word may be in every asset, so only some are ranked; assets with exactly this name are found by an index of their own.
// A statement's text stays where it is until the few that are shown are known.
const ranked = (candidates: string) =>
  `with candidates as (${candidates})
   select n.id::text,
          case when lower(n.name) = ($4::text[])[1] then 3
               when not exists (select from unnest($5::text[]) w(word) where strpos(lower(n.name), w.word) = 0) then 2
               else 0 end + ts_rank(n.words, to_tsquery('simple', $2), 1) as rank
   from candidates c join lineage.node n on n.tenant_id = $1 and n.id = c.id
   order by rank desc, n.kind = 'COLUMN', length(n.name), n.id limit $7`;
const TEXT = statement<{ id: string; rank: number }>(
  "lineage.search.text",
  ranked(`
     (select n.id from lineage.node n
      where n.tenant_id = $1 and n.kind = any($3::text[]) and left(n.name, 128) = any($4::text[]) and n.deleted_at is null
      limit $6)
     union
     (select n.id from lineage.node n
      where n.words @@ to_tsquery('simple', $2) and n.tenant_id = $1 and n.kind = any($3::text[]) and n.deleted_at is null
      limit $6)`),
);
const TEXT_OF_DROPPED = statement<{ id: string; rank: number }>(
  "lineage.search.text_of_dropped",
  ranked(`
     select n.id from lineage.node n
     where n.words @@ to_tsquery('simple', $2) and n.tenant_id = $1 and n.kind = any($3::text[]) and n.deleted_at is not null
     limit $6`),
);
const CANDIDATES_MAX = 2_000;

export interface TextSearch {
  /** What the person wrote. */
  text: string;
  query: string;
  words: readonly string[];
  kind: NodeKind | null;
  limit: number;
  dropped: boolean;
}
/** Those with the name first, then those whose name has all words, then by how much of them the words are. */
export async function searchText(db: Db, tenantId: string, asked: TextSearch) {
  const { text, query, words, kind, limit, dropped } = asked;
  const lower = text.trim().toLowerCase();
  const names = [...new Set([lower, text.trim(), text.trim().toUpperCase()])].map((name) => name.slice(0, 128));
  const values = [tenantId, query, kind === null ? NODE_KINDS : [kind], names, words, CANDIDATES_MAX, limit];
  const found = await db.read(TEXT, values);
  if (!dropped) return found;
  return [...found, ...(await db.read(TEXT_OF_DROPPED, values))].sort((a, b) => b.rank - a.rank).slice(0, limit);
}

const HITS = statement<HitRow>(
  "lineage.search.hits",
  `select n.id::text, n.kind, n.path, ${ATTRIBUTES} as attributes, s.summary,
          n.deleted_at is not null as is_dropped
   from lineage.node n
   left join lineage.summary s on s.tenant_id = n.tenant_id and s.node_id = n.id
   where n.tenant_id = $1 and n.id = any($2::int8[]) and n.kind = any($3::text[]) and ($4 or n.deleted_at is null)`,
);
export const readHits = (
  db: Db,
  tenantId: string,
  ids: readonly string[],
  { kind, dropped }: Pick<TextSearch, "kind" | "dropped">,
): Promise<HitRow[]> =>
  ids.length === 0 ? Promise.resolve([]) : db.read(HITS, [tenantId, ids, kind === null ? NODE_KINDS : [kind], dropped]);
