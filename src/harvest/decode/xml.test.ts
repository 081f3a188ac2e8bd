import { describe, expect, test } from "vitest";
import { DecodeError } from "./decode-error.ts";
import { jsonText } from "./numbers.ts";
import { PathError } from "./paths.ts";
import { decodeXml, recordElements } from "./xml.ts";

const decode = (body: string | Buffer, itemsPath = "$.set.item", contentType?: string, elements?: string[]) =>
  decodeXml(Buffer.from(body as string), contentType, recordElements(itemsPath, elements), (item) => item);
const itemIn = (content: string) => decode(`<set><item>${content}</item></set>`).items[0];

describe("an element", () => {
  test.each([
    ["without attributes and children is its text", "<a>t</a>", { a: ["t"] }],
    ["that is empty is an empty text", "<a/><b></b><c>\n </c>", { a: [""], b: [""], c: [""] }],
    ["with attributes is an object", '<a x="1" y:z="2">t</a>', { a: [{ "@x": "1", "@z": "2", "#text": "t" }] }],
    ["with attributes and no text has no text", '<a x="1"/>', { a: [{ "@x": "1" }] }],
    [
      "has its children in lists, without white space",
      "<a>\n<b>1</b>\n <c/><b>2</b></a>",
      { a: [{ b: ["1", "2"], c: [""] }] },
    ],
    ["is called by its local name", '<d:a xmlns:d="urn:d"><e:c/></d:a>', { a: [{ c: [""] }] }],
    [
      "with text between its children keeps their order, and all text inside",
      '<a>1.73 m<sup>2</sup> of <i x="1">b<sub>3</sub></i></a>',
      {
        a: [
          {
            sup: ["2"],
            i: [{ "@x": "1", sub: ["3"], "#text": "b3", "#mixed": ["b", { sub: "3" }] }],
            "#text": "1.73 m2 of b3",
            "#mixed": ["1.73 m", { sup: "2" }, " of ", { i: "b3" }],
          },
        ],
      },
    ],
    [
      "with nothing but markup has its text",
      "<title><i>E. coli</i> <b>K</b></title><list><b>1</b><name>2</name></list>",
      {
        title: [{ i: ["E. coli"], b: ["K"], "#text": "E. coli K", "#mixed": [{ i: "E. coli" }, " ", { b: "K" }] }],
        list: [{ b: ["1"], name: ["2"] }],
      },
    ],
    [
      "has the text of a child without text of its own",
      "<a>x <b><c>1</c><d>2</d></b></a>",
      {
        a: [{ b: [{ c: ["1"], d: ["2"] }], "#text": "x 12", "#mixed": ["x ", { b: "12" }] }],
      },
    ],
    ["has the text of CDATA, and not that of comments", "<a>x<!-- y --><![CDATA[<z>]]></a>", { a: ["x<z>"] }],
  ])("%s", (_, content, expected) => {
    expect(itemIn(content)).toEqual(expected);
  });

  test("called __proto__ is a child like others", () => {
    expect(jsonText(itemIn("<__proto__><polluted/></__proto__><__proto__/><constructor>c</constructor>"))).toBe(
      '{"__proto__":[{"polluted":[""]},""],"constructor":["c"]}',
    );
  });
});

describe("records", () => {
  const oai =
    '<OAI-PMH xmlns="urn:oai"><responseDate>d</responseDate><ListRecords><record><header/></record><record>2</record>' +
    '<resumptionToken completeListSize="6380" cursor="0">t</resumptionToken></ListRecords></OAI-PMH>';

  test("are the elements at the path, and the rest is the envelope", () => {
    expect(decode(oai, "$['OAI-PMH'].ListRecords[0].record")).toEqual({
      document: {
        "OAI-PMH": {
          responseDate: ["d"],
          ListRecords: [{ resumptionToken: [{ "@completeListSize": "6380", "@cursor": "0", "#text": "t" }] }],
        },
      },
      items: [{ header: [""] }, "2"],
      hasList: true,
      warnings: [],
    });
  });

  test("are those of all lists", () => {
    expect(decode("<a><b><c>1</c></b><b><c>2</c></b></a>", "$.a.b[*].c").items).toEqual(["1", "2"]);
  });

  test("may have several names", () => {
    const { items, document } = decode("<set><a>1</a><b>2</b><c>3</c></set>", "$.set", undefined, ["a", "b"]);
    expect(items).toEqual(["1", "2"]);
    expect(document).toEqual({ set: { c: ["3"] } });
  });

  test("are not elements of the same name elsewhere", () => {
    const { items, document } = decode("<set><x><item>no</item></x><item><item>inner</item></item></set>");
    expect(items).toEqual([{ item: ["inner"] }]);
    expect(document).toEqual({ set: { x: [{ item: ["no"] }] } });
  });

  test("may be the document itself", () => {
    expect(decode("<study><id>1</id></study>", "$.study")).toMatchObject({ items: [{ id: ["1"] }], hasList: true });
  });

  test.each([
    ["<set/>", true],
    ["<other/>", false],
    ["<OAI-PMH><error/></OAI-PMH>", false],
  ])("may be none: in %s the list is there: %s", (body, hasList) => {
    expect(decode(body)).toMatchObject({ items: [], hasList });
  });

  test.each(["$", "$.a[1].b", "$..a", "$.a[?@.b]"])("have no path %s", (path) => {
    expect(() => recordElements(path)).toThrow(PathError);
  });
});

describe("the characters of a body", () => {
  const latin = '<?xml version="1.0" encoding="ISO-8859-1"?><set><item>Köln</item></set>';
  const plain = "<set><item>Köln</item></set>";

  test.each([
    ["declared in the document", Buffer.from(latin, "latin1"), "text/xml; charset=utf-8"],
    ["declared in the header", Buffer.from(plain, "latin1"), "text/xml; charset=ISO-8859-1"],
    ["UTF-8, whatever the document declares", Buffer.from(latin), undefined],
    ["UTF-8, whatever the header declares", Buffer.from(plain), "text/html;charset=ISO-8859-1"],
    ["UTF-8 with a mark", Buffer.from(`\uFEFF${plain}`), undefined],
    ["UTF-16 with a mark", Buffer.from(`\uFEFF${plain}`, "utf16le"), undefined],
    ["UTF-16 without a mark", Buffer.from(plain, "utf16le").swap16(), undefined],
    ["after white space", Buffer.from(`\r\n ${latin}`), undefined],
  ])("are %s", (_, body, contentType) => {
    expect(decode(body, undefined, contentType)).toMatchObject({ items: ["Köln"], warnings: [] });
  });

  test("are whole where a chunk ends inside of one", () => {
    const long = "語é😀".repeat(50_000);
    expect(decode(`<set><item>x${long}</item></set>`).items).toEqual([`x${long}`]);
  });

  test("that XML does not allow are dropped, with a warning", () => {
    const { items, warnings } = decode(
      '<set><item a="\u0001&#x1;">x\u000b&#11;y\u0000z&#65;</item><item>&amp;#11;</item></set>',
    );
    expect(items).toEqual([{ "@a": "", "#text": "xyzA" }, "&#11;"]);
    expect(warnings).toEqual(["characters that XML does not allow were dropped"]);
  });
});

describe("an entity", () => {
  test("is that of XML or HTML, or stays as it is", () => {
    const doctype = '<!DOCTYPE set SYSTEM "http://127.0.0.1:9/none.dtd" [<!ENTITY own "expanded">]>';
    const { items, warnings } = decode(
      `${doctype}<set><item a="&uuml;">&uuml;&lt;&amp;&#252;&#xFC;&alpha;&Omega;&ndash;&own;&constructor;&__proto__;</item></set>`,
    );
    expect(items).toEqual([{ "@a": "ü", "#text": "ü<&üüαΩ–&own;&constructor;&__proto__;" }]);
    expect(warnings).toEqual(["entities that are not known were left as they are"]);
  });

  test("is never expanded into others", () => {
    const laughs = Array.from({ length: 9 }, (_, n) => `<!ENTITY l${n + 1} "${`&l${n};`.repeat(10)}">`).join("");
    const { items } = decode(`<!DOCTYPE set [<!ENTITY l0 "lol">${laughs}]><set><item>&l9;</item></set>`);
    expect(items).toEqual(["&l9;"]);
  });
});

describe("a body is refused", () => {
  test.each([
    ["that ends early", "<set><item>1</item><item>"],
    ["that ends inside of a tag", "<set><item>1</item><it"],
    ["with tags that do not match", "<set><item></set></item>"],
    ["with two roots", "<set/><set/>"],
    ["with a bare ampersand", "<set><item>AT&T</item>;</set>"],
    ["that is empty", ""],
    ["that is JSON", '{"error":"API rate limit exceeded"}'],
    ["with half of a declaration", '<?xml version="1.0"'],
  ])("%s", (_, body) => {
    expect(() => decode(body)).toThrow(DecodeError);
  });

  test("that is nested too deeply", () => {
    expect(() => decode(`<set>${"<a>".repeat(1_000_000)}`)).toThrow("nested more than 256 levels deep");
  });

  test("with too many attributes", () => {
    const attributes = Array.from({ length: 1_001 }, (_, n) => `a${n}="1"`).join(" ");
    expect(() => decode(`<set ${attributes}/>`)).toThrow("more than 1000 attributes");
  });

  test("with too many records", () => {
    expect(() => decode(`<set>${"<item/>".repeat(100_001)}</set>`)).toThrow("more than 100000 records");
  });

  test("with mixed content that repeats its text on every level", () => {
    const text = "x".repeat(1_000_000);
    expect(() => decode(`<set>${"<a>t".repeat(200)}${text}${"</a>".repeat(200)}</set>`)).toThrow("mixed content");
  });
});

test("mixed content inside of mixed content does not double with each level", () => {
  const { items } = decode(`<set><item>${"<a>t".repeat(200)}${"</a>".repeat(200)}</item></set>`);
  expect(jsonText(items[0]).length).toBeLessThan(200_000);
});

test("a large attribute and a large text are read", () => {
  const large = "x".repeat(5_000_000);
  expect(decode(`<set><item a="${large}">${large}</item></set>`).items).toEqual([{ "@a": large, "#text": large }]);
});
