/** The shape of an answer: which keys or elements it has where, with the types of values, but not the values. */

/** Paths (`message.items[].title`) with the types seen there. */
export type Shape = Map<string, Set<string>>;

export function jsonShape(text: string): Shape {
  const shape: Shape = new Map();
  function visit(value: unknown, path: string): void {
    note(shape, path, typeOf(value));
    if (Array.isArray(value)) for (const member of value) visit(member, `${path}[]`);
    else if (typeof value === "object" && value !== null)
      // The names below these are data: the addresses of licences, the words of an abstract.
      for (const [name, member] of Object.entries(value))
        visit(member, `${path}.${/\.(values|abstract_inverted_index)$/.test(path) ? "*" : name}`);
  }
  visit(JSON.parse(text), "");
  return shape;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Paths of elements (`OAI-PMH/ListRecords/record`); declarations, comments and attributes do not count. */
export function xmlShape(text: string): Shape {
  const shape: Shape = new Map();
  const open: string[] = [];
  const content = text.replaceAll(/<!\[CDATA\[[^]*?\]\]>|<!--[^]*?-->|<[?!][^>]*>/g, "");
  for (const [, closing, name = "", selfClosed] of content.matchAll(/<(\/?)([\w:.-]+)(?:\s[^>]*?)?(\/?)>/g)) {
    if (closing) {
      open.pop();
      continue;
    }
    open.push(name);
    note(shape, open.join("/"), "element");
    if (selfClosed) open.pop();
  }
  if (open.length > 0) throw new Error(`Elements are not closed: ${open.join("/")}`);
  return shape;
}

function note(shape: Shape, path: string, type: string): void {
  shape.set(path, (shape.get(path) ?? new Set()).add(type));
}

export function union(shapes: readonly Shape[]): Shape {
  const all: Shape = new Map();
  for (const shape of shapes) for (const [path, types] of shape) for (const type of types) note(all, path, type);
  return all;
}

/** The paths that every one of them has, in order. */
export function commonPaths(shapes: readonly Shape[]): string[] {
  const [first, ...others] = shapes;
  return [...(first?.keys() ?? [])].filter((path) => others.every((shape) => shape.has(path))).sort();
}

/** What `shape` has that `known` has not, as `path: type`. */
export function unknownIn(shape: Shape, known: Shape): string[] {
  return [...shape].flatMap(([path, types]) =>
    [...types].filter((type) => !known.get(path)?.has(type)).map((type) => `${path}: ${type}`),
  );
}
