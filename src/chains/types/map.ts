/**
 * A node that does the same for each item of a list. The items become the nodes of a run of its own, so each has its state,
 * its log and its retries, and a second attempt does only those that did not succeed.
 */
import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import { compileTemplate } from "../../kernel/expressions/template.ts";
import { type Dag, NODES_MAX, type NodeDef, NodeSchema } from "../definitions/dag.ts";
import { ITEM_VARIABLES } from "../definitions/variables.ts";
import { FinalFailure, nodeType } from "./node-type.ts";

const PARALLEL_DEFAULT = 20;
/** Of all items together: a large value that is written into each of ten thousand would fill the memory. */
const ITEMS_BYTES_MAX = 16 * 1024 * 1024;

export const map = nodeType({
  type: "map",
  summary: "Runs a node for each item of a list.",
  cfg: Type.Object(
    {
      over: Type.Array(Type.Unknown(), { maxItems: NODES_MAX, description: "The list, usually a template." }),
      maxParallel: Type.Optional(Type.Integer({ minimum: 1, maximum: NODES_MAX, default: PARALLEL_DEFAULT })),
      node: Type.Pick(NodeSchema, ["type", "cfg", "retry", "timeoutMs", "pool"], {
        additionalProperties: false,
        description: "As in a chain; its `cfg` may use `item` and `index`.",
      }),
    },
    { additionalProperties: false },
  ),
  untouched: ["node"],
  storesCfg: true,
  async execute(ctx, { over, maxParallel = PARALLEL_DEFAULT, node }) {
    if (over.length === 0) return { artifact: { items: [] } };
    const compiled = compileTemplate(node.cfg ?? {}, ITEM_VARIABLES);
    if ("problems" in compiled) throw new FinalFailure(`the node's cfg: ${compiled.problems[0]?.message}`);
    const secrets = standIns(compiled.template.secrets);
    const values = { params: ctx.params, opTime: ctx.opTime, nodes: ctx.parents, run: { id: ctx.runId }, secrets };
    let bytes = 0;
    const nodes = over.map((item, index): NodeDef => {
      const cfg = literal(
        compiled.template.render({ ...values, node: { id: ctx.nodeId, attempt: ctx.attempt }, item, index }),
        secrets,
      );
      bytes += Buffer.byteLength(JSON.stringify(cfg));
      if (bytes > ITEMS_BYTES_MAX) {
        throw new FinalFailure(
          `the cfg of its items has more than ${ITEMS_BYTES_MAX} bytes in all; bring addresses instead of large values`,
        );
      }
      const before = index - maxParallel;
      // As many lanes as may run at once; in each, an item begins when the one before it has ended, however it ended.
      const lane = before < 0 ? {} : { dependsOn: [String(before)], runWhen: "all_done" as const };
      return { ...node, id: String(index), cfg: cfg as Record<string, unknown>, ...lane };
    });
    const dag: Dag = { nodes };
    ctx.log(`${over.length} items, at most ${maxParallel} at once`);
    return { subRun: { of: { dag }, params: { ...ctx.params }, opTime: ctx.opTime } };
  },
});

/**
 * The run of the items is stored, so a secret is written into it by name, for each item to be given when it runs. What
 * stands in for it meanwhile cannot be guessed: data that looked like it would be given a secret.
 */
function standIns(names: ReadonlySet<string>): ReadonlyMap<string, string> {
  return new Map([...names].map((name) => [name, randomUUID()]));
}

/** What came out of an item is data: a `${` in it must not be taken for a template when the item's node runs. */
function literal(value: unknown, secrets: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string")
    return named(
      value.replaceAll("${", () => "$${"),
      secrets,
    ); // As text, `$$` would mean one `$`.
  if (Array.isArray(value)) return value.map((item) => literal(item, secrets));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, literal(item, secrets)]));
}

function named(text: string, secrets: ReadonlyMap<string, string>): string {
  let whole = text;
  for (const [name, standIn] of secrets) {
    // A `$` before it would make it plain text, so those are written as an expression.
    whole = whole.replaceAll(new RegExp(`(\\$*)${standIn}`, "g"), (_, dollars: string) =>
      dollars === "" ? `\${secrets.${name}}` : `\${"${dollars}"}\${secrets.${name}}`,
    );
  }
  return whole;
}
