/** The parameters that the nodes of a chain read, found in their templates and conditions: a chain does not declare them. */
import type { ChainNode } from "../api.ts";

const PARAM = /\bparams(?:\.([A-Za-z_]\w*)|\["([^"]+)"\])/g;

/** In the order of the nodes. */
export function paramsOf(nodes: readonly ChainNode[]): readonly string[] {
  const found = new Set<string>();
  for (const node of nodes) collect(node, found);
  return [...found];
}

function collect(value: unknown, found: Set<string>, isExpression = false): void {
  if (typeof value === "string") {
    const expressions = isExpression ? [value] : (value.match(/(?<!\$)\$\{[^}]*\}/g) ?? []);
    for (const expression of expressions)
      for (const [, plain, quoted] of expression.matchAll(PARAM)) found.add(plain ?? quoted ?? "");
  } else if (typeof value === "object" && value !== null) {
    for (const [key, inner] of Object.entries(value)) collect(inner, found, key === "if");
  }
}

/** What a person types into a field: JSON if it is some, else text. */
export function typedValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** The same for a value that is there already. */
export function typedText(value: unknown): string {
  if (typeof value !== "string") return value === undefined ? "" : JSON.stringify(value);
  return typedValue(value) === value ? value : JSON.stringify(value);
}
