/**
 * A check after a load: fails when a table has lost too many rows since the last load, so that its children do not publish
 * it. The counts come from other nodes, through templates.
 */
export default {
  type: "row-count-check",
  summary: "Fails when a row count has dropped by more than a given share.",

  // A plain JSON Schema. Fields that it does not name are refused, and defaults are filled in before `execute`.
  cfg: {
    type: "object",
    properties: {
      rows: { type: "integer", minimum: 0 },
      previous: { type: "integer", minimum: 0 },
      maxDropPercent: { type: "number", minimum: 0, maximum: 100, default: 20 },
    },
    required: ["rows", "previous"],
  },

  execute(ctx, { rows, previous, maxDropPercent }) {
    const dropPercent = previous === 0 ? 0 : Math.max(0, (100 * (previous - rows)) / previous);
    const finding = `${rows} rows after ${previous}, a drop of ${dropPercent.toFixed(1)}%`;
    if (dropPercent > maxDropPercent) {
      // A retry would count the same rows: `retry: false` fails the node at once, whatever its retry policy.
      throw Object.assign(new Error(`${finding}; at most ${maxDropPercent}% is allowed.`), { retry: false });
    }
    ctx.log(finding);
    return { artifact: { rows, previous, dropPercent } };
  },
};
