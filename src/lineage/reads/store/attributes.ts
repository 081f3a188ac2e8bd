/** SQL for the attributes of an asset, which may be dropped. */

/** Of the node `n`. A process of an earlier version may have left `last_attributes` set at one that exists again. */
export const ATTRIBUTES =
  "case when n.deleted_at is null then n.attributes else coalesce(n.last_attributes, n.attributes) end";
