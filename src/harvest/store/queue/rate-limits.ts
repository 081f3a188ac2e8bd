/** SQL that reads the rates which the newest plans declare. */
import type { Queryable } from "../../../kernel/data/db.ts";
import { statement } from "../../../kernel/data/statement.ts";
import type { RateLimitSpec } from "../../spec/snapshot.ts";

export interface PlannedLimits {
  planned_at: Date;
  /** Of the list. */
  list: RateLimitSpec;
  detail: RateLimitSpec | null;
}

// `offset 0` keeps the lookup of one plan for each endpoint, whatever the statistics say.
const NEWEST = statement<PlannedLimits>(
  "harvest.plan.newest_limits",
  `select p.planned_at, s.snapshot #> '{spec,rateLimit}' as list, s.snapshot #> '{detail,rateLimit}' as detail
   from harvest.reg_prov_endpoint_def e
   cross join lateral (select p.planned_at, p.ended_at, p.spec_fingerprint from harvest.ing_plan p
                       where p.endpoint_id = e.endpoint_id order by p.plan_id desc limit 1 offset 0) p
   join harvest.snapshot s on s.spec_fingerprint = p.spec_fingerprint
   where (e.removed_at is null or p.ended_at is null)
     and (s.snapshot #> '{spec,rateLimit,keys}' ?| $1 or s.snapshot #> '{detail,rateLimit,keys}' ?| $1)
   order by e.endpoint_id`,
);

/** What the newest plan of each endpoint declares, of all sources, if it names one of the keys. Not of removed endpoints. */
export function newestLimits(tx: Queryable, keys: readonly string[]): Promise<PlannedLimits[]> {
  return tx.rows(NEWEST, [keys]);
}
