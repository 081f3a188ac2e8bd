/**
 * The file of `millrace chain apply`: a chain as YAML or JSON. Keeps positions, so that the server's errors about a node can name
 * its line.
 */

import { OperatorError } from "../../kernel/errors.ts";
import { didYouMean } from "../../kernel/nearest.ts";
import { EXIT } from "../common/exit-codes.ts";
import { assertJson, parseYamlFile } from "../common/yaml-file.ts";

/** The values are unchanged: the server checks them. */
export interface ChainFile {
  name: string;
  /** The fields of the chain in the file, except its nodes. */
  settings: Readonly<Record<string, unknown>>;
  enabled: boolean | undefined;
  dag: unknown;
  /** The server's error with its place: `daily.yaml:12:5: load, type: there is no node type sqll.` */
  complaint(problem: DagProblem): string;
}

/** What is wrong with a DAG. */
export interface DagProblem {
  /** Where, below the DAG: `nodes[2].cfg.url`. */
  path: string;
  nodeId?: string;
  message: string;
}

const SETTINGS = ["description", "maxActiveRuns", "runTimeoutMs"];
const FIELDS = ["name", ...SETTINGS, "enabled", "dag", "nodes"];

export function parseChainFile(filename: string, text: string): ChainFile {
  const { content, place } = parseYamlFile(filename, text);
  const refuse = (field: string, sentence: string) => new OperatorError(`${place([field])}: ${sentence}`, EXIT.usage);

  const unknown = Object.keys(content).find((field) => !FIELDS.includes(field));
  if (unknown !== undefined) {
    throw refuse(unknown, `\`${unknown}\` is not a field of a chain.${didYouMean(unknown, FIELDS)}`);
  }
  assertJson(filename, content);
  const { name, enabled, dag, nodes } = content;
  if (typeof name !== "string" || name === "") throw refuse("name", "the chain has no name: add `name: ...`.");
  if (enabled !== undefined && typeof enabled !== "boolean") throw refuse("enabled", "`enabled` is true or false.");
  if ((dag === undefined) === (nodes === undefined)) {
    throw refuse("nodes", "a chain has either `nodes`, or a whole DAG under `dag`.");
  }
  const above = dag === undefined ? [] : ["dag"];
  return {
    name,
    settings: Object.fromEntries(SETTINGS.filter((field) => field in content).map((field) => [field, content[field]])),
    enabled,
    dag: dag ?? { nodes },
    complaint({ path, nodeId, message }) {
      const what = nodeId === undefined ? path : path.replace(/^nodes\[\d+\]\.?/, "");
      const subject = [nodeId, what].filter((part) => part).join(", ");
      return `${place([...above, ...stepsOf(path)])}: ${subject === "" ? "" : `${subject}: `}${message}`;
    },
  };
}

/** The steps of a path such as `nodes[2].cfg.url`. */
function stepsOf(path: string): string[] {
  return path.split(/[.[\]]+/).filter((step) => step !== "");
}
