/** Elements that nobody thought of, beside a slow reading of the same tree that follows the rules one by one. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonText } from "./numbers.ts";
import { decodeXml, recordElements } from "./xml.ts";

/** The bytes that the decoder takes at once. */
const CHUNK_BYTES = 65_536;
const INLINE = ["i", "sup"];

interface Tag {
  kind: "element";
  name: string;
  attributes: [string, string][];
  children: Part[];
}
type Part = { kind: "text" | "cdata" | "comment"; content: string } | Tag;

const text = (...more: string[]) =>
  fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", "\t", "é", "😀", "]", '"', "\\", ...more), maxLength: 8 });
const names = fc.constantFrom("a", "c", "x:a", "i", "sup", "__proto__", "constructor", "x:1", "_");
const attributeNames = fc.constantFrom("a", "x:a", "y:b", "__proto__", "xmlns", "xmlns:x");

const { tag } = fc.letrec<{ tag: Tag; part: Part }>((tie) => ({
  tag: fc.record({
    kind: fc.constant("element"),
    name: names,
    attributes: fc.uniqueArray(fc.tuple(attributeNames, text("<", ">", "&", "'")), {
      maxLength: 3,
      selector: ([name]) => name,
    }),
    children: fc.array(tie("part"), { maxLength: 6 }),
  }),
  part: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.record({ kind: fc.constant("text"), content: text("<", ">", "&", "'") }),
    fc.record({ kind: fc.constant("cdata"), content: text("<", "&") }),
    fc.record({ kind: fc.constant("comment"), content: fc.constantFrom("", " c ") }),
    { arbitrary: tie("tag"), weight: 3 },
  ),
}));

test("any elements become what the rules say, in the same order, wherever a chunk of the body ends", () => {
  fc.assert(
    fc.property(fc.array(tag, { minLength: 1, maxLength: 10 }), fc.nat(), fc.nat(), (tags, spelling, cut) => {
      const items = tags.map((one) => ({ ...one, name: "item" }));
      const content = `<set>${items.map((one) => written(one, spelling)).join("\n")}</set>`;
      const bytes = Buffer.byteLength(content);
      const before = `<!--${" ".repeat(CHUNK_BYTES - 7 - (cut % (bytes + 1)))}-->`;
      const decoded = decodeXml(Buffer.from(before + content), undefined, recordElements("$.set.item"), jsonText);
      expect(decoded.items).toEqual(items.map((one) => jsonText(valueOf(one))));
    }),
    { numRuns: 200 },
  );
});

function valueOf({ attributes, children }: Tag): unknown {
  const own = attributes
    .filter(([name]) => !name.startsWith("xmlns"))
    .map(([name, value]): [string, unknown] => [`@${localName(name)}`, value]);
  const tags = children.filter((part) => part.kind === "element");
  const whole = textInside(children);
  if (tags.length === 0) {
    if (isBlank(whole)) return own.length === 0 ? "" : Object.fromEntries(own);
    return own.length === 0 ? whole : Object.fromEntries([...own, ["#text", whole]]);
  }
  const lists = [...new Set(tags.map(({ name }) => localName(name)))].map((name): [string, unknown] => [
    name,
    tags.filter((one) => localName(one.name) === name).map(valueOf),
  ]);
  const ownText = children.filter((part) => part.kind !== "element");
  const isMixed = !isBlank(textInside(ownText)) || tags.every(({ name }) => INLINE.includes(localName(name)));
  const mixed: [string, unknown][] = isMixed
    ? [
        ["#text", whole],
        ["#mixed", inOrder(children)],
      ]
    : [];
  return Object.fromEntries([...own, ...lists, ...mixed]);
}

/** Texts before the first child are one; after it, each is as the body has it, and CDATA is a text of its own. */
function inOrder(children: readonly Part[]): unknown[] {
  const first = children.findIndex(({ kind }) => kind === "element");
  const before = textInside(children.slice(0, first));
  const parts: unknown[] = before === "" ? [] : [before];
  let run = "";
  const endRun = () => {
    if (run !== "") parts.push(run);
    run = "";
  };
  for (const part of children.slice(first)) {
    if (part.kind === "text") {
      run += part.content;
      continue;
    }
    endRun();
    if (part.kind === "cdata") parts.push(part.content);
    if (part.kind === "element") {
      parts.push(Object.fromEntries([[localName(part.name), textInside(part.children)]]));
    }
  }
  endRun();
  return parts;
}

function textInside(parts: readonly Part[]): string {
  return parts
    .map((part) => {
      if (part.kind === "element") return textInside(part.children);
      return part.kind === "comment" ? "" : part.content;
    })
    .join("");
}

function isBlank(content: string): boolean {
  return /^[ \t\n]*$/.test(content);
}

function localName(name: string): string {
  return name.split(":").at(-1)!;
}

function written(part: Part, spelling: number): string {
  if (part.kind === "element") return writtenTag(part, spelling);
  if (part.kind === "cdata") return `<![CDATA[${part.content}]]>`;
  return part.kind === "comment" ? `<!--${part.content}-->` : escaped(part.content, spelling);
}

function writtenTag({ name, attributes, children }: Tag, spelling: number): string {
  const list = attributes.map(([key, value]) => ` ${key}="${escaped(value, spelling).replace(/[\t\n]/g, asNumber)}"`);
  const start = `<${name}${list.join("")}`;
  if (children.length === 0 && spelling % 2 === 0) return `${start}/>`;
  return `${start}>${children.map((child) => written(child, spelling)).join("")}</${name}>`;
}

/** The characters that must be escaped, and others of which some are, in one of three spellings. */
function escaped(content: string, spelling: number): string {
  return content.replaceAll(/[<>&"é]/g, (character) => {
    const code = character.charCodeAt(0);
    const named = { "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;", é: "&eacute;" }[character]!;
    return [named, `&#${code};`, `&#x${code.toString(16)};`][spelling % 3]!;
  });
}

function asNumber(character: string): string {
  return `&#${character.charCodeAt(0)};`;
}
