/** The indexes of a table, which Gravitino sends as one text: their descriptions, separated by commas. */
import type { AttributeValue } from "../../graph/facts.ts";
import { nameText } from "../facets.ts";

export interface IndexList {
  /** One that is there already stays as it is. */
  add(name: string, type: string | undefined, columns: unknown): void;
  remove(name: string): void;
  /** Null when there is none. */
  text(): string | null;
}

export function createIndexList(indexes: AttributeValue | undefined): IndexList {
  const pieces = new Set<string>();
  /** An index is known by any word of its description, as a whole: `pk` is not named by `pk_orders`. */
  const naming = new Map<string, Set<string>>();

  function put(piece: string): void {
    pieces.add(piece);
    for (const word of wordsOf(piece)) {
      const known = naming.get(word);
      if (known) known.add(piece);
      else naming.set(word, new Set([piece]));
    }
  }

  function take(piece: string): void {
    pieces.delete(piece);
    for (const word of wordsOf(piece)) naming.get(word)?.delete(piece);
  }

  for (const piece of typeof indexes === "string" ? piecesOf(indexes) : []) put(piece);

  return {
    add(name, type = "INDEX", columns) {
      if (naming.get(name)?.size) return;
      const of = Array.isArray(columns) ? columns.flatMap((column) => nameText(column) ?? []).join(", ") : "";
      put(`${type} ${name}(${of})`);
    },
    remove(name) {
      for (const piece of naming.get(name) ?? []) take(piece);
    },
    text: () => (pieces.size > 0 ? [...pieces].join(",") : null),
  };
}

/** Cut at the commas outside of brackets. */
function piecesOf(indexes: string): string[] {
  const pieces: string[] = [];
  let [start, depth] = [0, 0];
  for (let at = 0; at < indexes.length; at += 1) {
    const sign = indexes.charAt(at);
    if ("([{".includes(sign)) depth += 1;
    else if (")]}".includes(sign)) depth -= 1;
    else if (sign === "," && depth <= 0) {
      pieces.push(indexes.slice(start, at));
      start = at + 1;
    }
  }
  return [...pieces, indexes.slice(start)].filter((piece) => piece.trim() !== "");
}

const wordsOf = (piece: string): string[] => piece.split(/[^\p{L}\p{N}_$-]+/u);
