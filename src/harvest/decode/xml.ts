/**
 * A body of XML as records and their envelope, in one pass over the bytes: a record becomes a JSON tree when its element closes,
 * and is read at once. The whole document is never built, and what is collected soon costs little to collect.
 *
 * An element is `{"@attribute": "v", "Child": [...], "#text": "..."}`; names are without their prefix, and children always in
 * lists. Without attributes and children it is its text. One with text between its children also has their texts in order as
 * `"#mixed": ["m", {"sup": "2"}]`, and `#text` is all text inside; so has one with nothing but markup, as a title in italics.
 * White space between other children is left out.
 *
 * DTDs are not read: entities that only they define are taken from HTML, or stay as `&name;`, so nothing is fetched or expanded.
 */
import { StringDecoder } from "node:string_decoder";
import { SaxesParser } from "saxes";
import { type Charset, charsetIn, charsetOf } from "./charset.ts";
import { DecodeError } from "./decode-error.ts";
import { NAMED_ENTITIES } from "./entities.ts";
import { compilePath, PathError } from "./paths.ts";

export interface XmlDocument<Item> {
  /** The root element by its name, without the records. */
  document: Element;
  /** What was read from the records. */
  items: Item[];
  /** The element that contains the records is there, be it empty. */
  hasList: boolean;
  warnings: string[];
}

/** Which elements are records: those of these names that are children of the element at `parents`. */
export interface RecordElements {
  parents: readonly string[];
  names: ReadonlySet<string>;
}

const DEPTH_MAX = 256;
const ATTRIBUTES_MAX = 1_000;
const ELEMENTS_MAX = 5_000_000;
export const ITEMS_MAX = 100_000;
const NAMES_MAX = 10_000;
const CHUNK_BYTES = 65_536;
/** Text in mixed content is held once for each level, so deep nesting would multiply the body. */
const MIXED_FACTOR_MAX = 8;
const MIXED_LENGTH_MIN = 1_000_000;

// oxlint-disable-next-line no-control-regex -- it matches control characters
const ILLEGAL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const BAD_REFERENCE = /&#[xX]?[\da-fA-F]+;/g;
const NOT_SPACE = /[^ \t\r\n]/;
/** Markup of text. An element that contains nothing else is a text. */
const INLINE: ReadonlySet<string> = new Set("b bold em i italic math sc strong sub sup tt u".split(" "));
const DECLARED_ENCODING = /^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]+)/;

/**
 * The element names of `$['OAI-PMH'].ListRecords[0].record`; `[0]` and `[*]` have no meaning here. With `itemElements`, the path
 * is that of their parent. Throws a PathError.
 */
export function recordElements(itemsPath: string, itemElements: readonly string[] = []): RecordElements {
  const { steps } = compilePath(itemsPath);
  if (!steps) throw new PathError(`\`${itemsPath}\` is not a path of element names.`);
  if (steps.some((step) => typeof step === "number" && step !== 0)) {
    throw new PathError(`\`${itemsPath}\` has an index other than 0, but all elements of a name are records.`);
  }
  const names = steps.filter((step) => typeof step === "string");
  if (itemElements.length > 0) return { parents: names, names: new Set(itemElements) };
  const last = names.at(-1);
  if (last === undefined) throw new PathError(`\`${itemsPath}\` names no element.`);
  return { parents: names.slice(0, -1), names: new Set([last]) };
}

/** An element that is open. */
interface Frame {
  name: string;
  parent: Frame | undefined;
  depth: number;
  /** Steps of the path to the records that lead here; -1 beside the path. */
  onPath: number;
  /** Its attributes, then its children; undefined while it has neither. */
  element: Element | undefined;
  /** All text inside, that of its children included. */
  text: string;
  /** From its first child on, texts and children in order: each text after the name of its child, or undefined. */
  parts: (string | undefined)[] | undefined;
  /** The list of the last child: most children follow one of their name. */
  lastName: string | undefined;
  lastList: unknown[] | undefined;
  hasOwnText: boolean;
  hasOnlyInline: boolean;
}

type Element = Record<string, unknown>;

export function decodeXml<Item>(
  body: Buffer,
  contentType: string | undefined,
  records: RecordElements | undefined,
  read: (record: unknown) => Item,
): XmlDocument<Item> {
  const charset = charsetOf(body, [declaredEncoding(body), charsetIn(contentType)]);
  const warnings = new Set<string>();
  if (charset.lossy) warnings.add("bytes that are not UTF-8 were replaced");
  const tree = treeBuilder(records, read, Math.max(MIXED_LENGTH_MIN, body.length * MIXED_FACTOR_MAX));

  const parser = new SaxesParser<{ xmlns: false }>({ xmlns: false });
  parser.ENTITIES = NAMED_ENTITIES;
  let badReference = false;
  const clean = (text: string) => (badReference ? text.replaceAll(BAD_REFERENCE, "") : text);
  parser.on("error", ({ message }) => {
    if (message.endsWith("undefined entity.")) {
      warnings.add("entities that are not known were left as they are");
    } else if (message.endsWith("malformed character entity.")) {
      badReference = true;
      warnings.add("characters that XML does not allow were dropped");
    } else {
      throw new DecodeError(`The body is not well-formed XML (${message.replace(/\.$/, "").slice(0, 200)}).`);
    }
  });
  parser.on("attribute", ({ name, value }) => {
    tree.attribute(name, clean(value));
    badReference = false;
  });
  parser.on("opentag", ({ name }) => tree.open(name));
  const text = (content: string) => {
    tree.text(clean(content));
    badReference = false;
  };
  parser.on("text", text);
  parser.on("cdata", text);
  parser.on("closetag", () => tree.close());

  let isFirst = true;
  for (const chunk of chunksOf(body, charset)) {
    let legal = chunk.replace(ILLEGAL, "");
    if (legal.length < chunk.length) warnings.add("characters that XML does not allow were dropped");
    if (isFirst) legal = legal.trimStart(); // A declaration is only allowed at the very start.
    if (legal !== "") isFirst = false;
    parser.write(legal);
  }
  parser.close();
  return { ...tree.result(), warnings: [...warnings] };
}

function declaredEncoding(body: Buffer): string | undefined {
  return DECLARED_ENCODING.exec(body.toString("latin1", 0, 512))?.[1];
}

function* chunksOf(body: Buffer, { encoding, bom }: Charset): Generator<string> {
  const utf8 = encoding === "utf-8" ? new StringDecoder("utf8") : undefined;
  const other = utf8 ? undefined : new TextDecoder(encoding);
  for (let at = bom; at < body.length; at += CHUNK_BYTES) {
    const bytes = body.subarray(at, at + CHUNK_BYTES);
    yield utf8?.write(bytes) ?? other!.decode(bytes, { stream: true });
  }
  yield utf8?.end() ?? other!.decode();
}

function treeBuilder<Item>(
  records: RecordElements | undefined,
  read: (record: unknown) => Item,
  mixedLengthMax: number,
) {
  const { parents, names } = records ?? { parents: [], names: new Set<string>() };
  /** Of the tag that is being read. */
  let attributes: Element | undefined;
  let attributeCount = 0;
  let top: Frame | undefined;
  let root: { name: string; value: unknown } | undefined;
  const items: Item[] = [];
  let hasList = false;
  let elements = 0;
  let mixedLength = 0;

  function isRecord(name: string, above: number): boolean {
    return above === parents.length && names.has(name);
  }

  return {
    attribute(qualified: string, value: string): void {
      attributeCount += 1;
      if (attributeCount > ATTRIBUTES_MAX) {
        throw new DecodeError(`An element has more than ${ATTRIBUTES_MAX} attributes.`);
      }
      if (qualified === "xmlns" || qualified.startsWith("xmlns:")) return;
      attributes ??= {};
      attributes[attributeKey(qualified)] = value;
    },

    open(qualified: string): void {
      elements += 1;
      const depth = top ? top.depth + 1 : 1;
      if (elements > ELEMENTS_MAX) throw new DecodeError(`The body has more than ${ELEMENTS_MAX} elements.`);
      if (depth > DEPTH_MAX) throw new DecodeError(`The body is nested more than ${DEPTH_MAX} levels deep.`);
      const name = localName(qualified);
      const above = top ? top.onPath : 0;
      const onPath = above >= 0 && above < parents.length && parents[above] === name ? above + 1 : -1;
      if (onPath === parents.length) hasList = true;
      if (top && !top.parts) {
        top.parts = top.text === "" ? [] : [undefined, top.text];
        top.hasOwnText = !isBlank(top.text);
      }
      top = {
        name,
        parent: top,
        depth,
        onPath,
        element: attributes,
        text: "",
        parts: undefined,
        lastName: undefined,
        lastList: undefined,
        hasOwnText: false,
        hasOnlyInline: true,
      };
      attributes = undefined;
      attributeCount = 0;
    },

    text(content: string): void {
      if (!top) return;
      top.text += content;
      if (!top.parts) return;
      top.parts.push(undefined, content);
      top.hasOwnText ||= !isBlank(content);
    },

    close(): void {
      const frame = top!;
      top = frame.parent;
      const value = valueOf(frame);
      if (isRecord(frame.name, top ? top.onPath : 0)) {
        if (items.length === ITEMS_MAX) throw new DecodeError(`The body has more than ${ITEMS_MAX} records.`);
        items.push(read(value));
      } else if (top) {
        addChild(top, frame, value);
      }
      if (!top) root = { name: frame.name, value };
    },

    result(): Omit<XmlDocument<Item>, "warnings"> {
      const isItem = root !== undefined && isRecord(root.name, 0);
      return {
        document: root && !isItem ? { [root.name]: root.value } : {},
        items,
        hasList: hasList || (parents.length === 0 && isItem),
      };
    },
  };

  function valueOf(frame: Frame): unknown {
    const { element, text, parts } = frame;
    if (!parts) {
      if (isBlank(text)) return element ?? "";
      if (!element) return text;
      element["#text"] = text;
      return element;
    }
    const hasChildren = frame.lastList !== undefined;
    if (!frame.hasOwnText && !(hasChildren && frame.hasOnlyInline)) return element ?? "";
    mixedLength += text.length;
    if (mixedLength > mixedLengthMax) throw new DecodeError("The body has mixed content that is nested too deeply.");
    const mixed = element ?? {};
    mixed["#text"] = text;
    if (hasChildren) mixed["#mixed"] = inOrder(parts);
    return mixed;
  }
}

function addChild(parent: Frame, { name, text }: Frame, value: unknown): void {
  parent.text += text;
  parent.parts!.push(name, text);
  parent.hasOnlyInline &&= INLINE.has(name);
  if (name === parent.lastName) {
    parent.lastList!.push(value);
    return;
  }
  parent.element ??= {};
  let list = Object.hasOwn(parent.element, name) ? (parent.element[name] as unknown[]) : undefined;
  if (list) list.push(value);
  else {
    list = [value];
    setOwn(parent.element, name, list);
  }
  parent.lastName = name;
  parent.lastList = list;
}

/** Only texts: with the whole children, which the lists have, each level would double the record. */
function inOrder(parts: readonly (string | undefined)[]): unknown[] {
  const mixed: unknown[] = [];
  for (let at = 0; at < parts.length; at += 2) {
    const name = parts[at];
    const text = parts[at + 1];
    mixed.push(name === undefined ? text : { [name]: text });
  }
  return mixed;
}

/** Most texts begin with a letter. */
function isBlank(text: string): boolean {
  return !(text.charCodeAt(0) > 0x20) && !NOT_SPACE.test(text);
}

const localNames = new Map<string, string>();
const attributeKeys = new Map<string, string>();

/** Documents use few names, so they are cut once. */
function localName(qualified: string): string {
  const known = localNames.get(qualified);
  if (known !== undefined) return known;
  const name = qualified.slice(qualified.indexOf(":") + 1);
  if (localNames.size < NAMES_MAX) localNames.set(qualified, name);
  return name;
}

function attributeKey(qualified: string): string {
  const known = attributeKeys.get(qualified);
  if (known !== undefined) return known;
  const key = `@${qualified.slice(qualified.indexOf(":") + 1)}`;
  if (attributeKeys.size < NAMES_MAX) attributeKeys.set(qualified, key);
  return key;
}

/** Not by assignment, which would set the prototype for a child called `__proto__`. */
function setOwn(element: Element, name: string, value: unknown): void {
  if (name === "__proto__")
    Object.defineProperty(element, name, { value, enumerable: true, configurable: true, writable: true });
  else element[name] = value;
}
