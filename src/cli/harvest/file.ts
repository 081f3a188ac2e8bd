/** The file of a definition: sent to the server as it is, which checks it. Keeps positions, so that a problem can name its line. */
import { written } from "../../kernel/json/schema-errors.ts";
import { assertJson, parseYamlFile } from "../common/yaml-file.ts";

export interface DefinitionFile {
  filename: string;
  /** The name of the source, or nothing if the file has none: the server says so. */
  source: string;
  content: Record<string, unknown>;
  /** A problem with its place: `shop.yaml:12:5: endpoints.orders.pagination.type: ...` */
  complaint(problem: DefinitionProblem): string;
}

/** As the server answers it. */
export interface DefinitionProblem {
  table: string;
  field: string;
  reason: string;
  /** The steps to the value in the definition. */
  path: readonly string[];
}

export function parseDefinitionFile(filename: string, text: string): DefinitionFile {
  const { content, place } = parseYamlFile(filename, text);
  assertJson(filename, content);
  const { source } = content;
  return {
    filename,
    source: typeof source === "string" ? source : "",
    content,
    complaint({ path, reason }) {
      const subject = written(path);
      return `${place(path)}: ${subject === "" || reason.includes(subject) ? "" : `${subject}: `}${reason}`;
    },
  };
}
