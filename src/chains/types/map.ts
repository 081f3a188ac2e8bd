/**
 * A node that runs another node for each item of a list. The items are the nodes of a child run, so each has its own state,
 * log and retries, and a second attempt only runs those that did not succeed.
 */
import { randomUUID } from "node:crypto";
import { Type } from "typebox";
import { compileTemplate } from "../../kernel/expressions/template.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { type Dag, NODES_MAX, type NodeDef, NodeSchema } from "../definitions/dag.ts";
import { ITEM_VARIABLES } from "../definitions/variables.ts";
import { FinalFailure, nodeType } from "./node-type.ts";

const PARALLEL_DEFAULT = 20;
/** For all items together: a large value repeated in ten thousand items would exhaust memory. */
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
  unrendered: ["node"],
  storesCfg: true,
  async execute(ctx, { over, maxParallel = PARALLEL_DEFAULT, node }) {
    if (over.length === 0) return { artifact: { items: [] } };
    const compiled = compileTemplate(node.cfg ?? {}, ITEM_VARIABLES);
    if ("problems" in compiled) throw new FinalFailure(`the node's cfg: ${compiled.problems[0]?.message}`);
    const secrets = placeholders(compiled.template.secrets);
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
          `the cfg of its items has more than ${ITEMS_BYTES_MAX} bytes in total; pass references instead of large values`,
        );
      }
      const before = index - maxParallel;
      // `maxParallel` lanes: an item depends on the one `maxParallel` places before it, whatever the status of that one.
      const lane = before < 0 ? {} : { dependsOn: [String(before)], runWhen: "all_done" as const };
      return { ...node, id: String(index), cfg: cfg as Record<string, unknown>, ...lane };
    });
    const dag: Dag = { nodes };
    ctx.log(`${counted(over.length, "item")}, at most ${maxParallel} at a time`);
    return { subRun: { of: { dag }, params: { ...ctx.params }, opTime: ctx.opTime } };
  },
});

/**
 * The DAG of the items is stored, so it names secrets instead of containing them. While the templates are rendered, a random
 * placeholder stands for each secret; it cannot be guessed, or data could pose as a placeholder and be given the secret.
 */
function placeholders(names: ReadonlySet<string>): ReadonlyMap<string, string> {
  return new Map([...names].map((name) => [name, randomUUID()]));
}

/** Escapes rendered values: a `${` in them is data, and must not be rendered again when the item's node runs. */
function literal(value: unknown, secrets: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string")
    return withSecretNames(
      value.replaceAll("${", () => "$${"),
      secrets,
    ); // In a replacement string, `$$` would mean one `$`.
  if (Array.isArray(value)) return value.map((item) => literal(item, secrets));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, literal(item, secrets)]));
}

function withSecretNames(text: string, secrets: ReadonlyMap<string, string>): string {
  let whole = text;
  for (const [name, placeholder] of secrets) {
    // A `$` before it would escape it, so those are written as an expression.
    whole = whole.replaceAll(new RegExp(`(\\$*)${placeholder}`, "g"), (_, dollars: string) =>
      dollars === "" ? `\${secrets.${name}}` : `\${"${dollars}"}\${secrets.${name}}`,
    );
  }
  return whole;
}
