import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maskOf, NO_MASK } from "./mask.ts";

describe("a secret is masked", () => {
  const secret = "p\"w/d 1é'";
  const { text } = maskOf([secret]);

  test.each([
    ["as it is", `curl -u etl:${secret} https://x.org`, "curl -u etl:*** https://x.org"],
    ["repeatedly", secret + secret, "******"],
    ["in JSON", JSON.stringify({ token: secret }), '{"token":"***"}'],
    ["in ASCII-only JSON", '{"token":"p\\"w/d 1\\u00e9\'"}', '{"token":"***"}'],
    ["in JSON within JSON", JSON.stringify(JSON.stringify([secret])), '"[\\"***\\"]"'],
    ["encoded for a URL", `/?token=${encodeURIComponent(secret)}`, "/?token=***"],
    ["encoded for a form", `token=${new URLSearchParams({ "": secret }).toString().slice(1)}`, "token=***"],
    ["in HTML", "<b>p&quot;w/d 1é&#39;</b>", "<b>***</b>"],
    ["in XML", '<b>p"w/d 1é&apos;</b>', "<b>***</b>"],
    ["in hex", Buffer.from(secret).toString("hex").toUpperCase(), "***"],
    ["in a path", new URL(`http://x/${secret}/y`).href, "http://x/***/y"],
    ["in a query", new URL(`http://x/?t=${secret}&u=1`).href, "http://x/?t=***&u=1"],
    ["in credentials of a URL", Object.assign(new URL("http://u@x/"), { password: secret }).href, "http://u:***@x/"],
  ])("%s", (_, input, masked) => {
    expect(text(input)).toBe(masked);
  });

  test.each(["", "u:", "us:", "user:"])(
    "in base64 after %j, except for characters shared with its neighbours",
    (before) => {
      for (const encoding of ["base64", "base64url"] as const) {
        const header = Buffer.from(`${before}${secret}`).toString(encoding);
        const masked = maskOf([secret]).text(`Basic ${header}`);
        expect(masked).toMatch(/^Basic [\w+/-]{0,7}\*\*\*[\w+/=-]{0,3}$/);
      }
    },
  );

  test("in every string of a JSON value, and in its keys", () => {
    const value = { [secret]: [secret, { n: 1, none: null, yes: true }] };
    expect(maskOf([secret]).json(value)).toEqual({ "***": ["***", { n: 1, none: null, yes: true }] });
  });

  test("line by line, if the lines are long enough", () => {
    const mask = maskOf(["-----\nMIIEvQIBADANBg\npass123\nab\n-----"]);
    expect(mask.text("read MIIEvQIBADANBg, pass123, ab and -----")).toBe("read ***, ***, ab and -----");
  });

  test("string by string, if it is JSON", () => {
    const account = { type: "sa", private_key: "-----BEGIN KEY-----\nMIIEvQIBADANBg\n" };
    const mask = maskOf([JSON.stringify(account)]);
    expect(mask.json(account)).toEqual({ type: "sa", private_key: "***" });
    expect(mask.text("MIIEvQIBADANBg")).toBe("***");
  });

  test("also if part of it is a lone surrogate, or all of it punctuation", () => {
    expect(maskOf(['["half \\ud800 of it", "the other part"]']).text("the other part")).toBe("***");
    expect(maskOf(["!?!?"]).text("what!?!?")).toBe("what***");
  });

  test("without surrounding spaces, which a shell removes", () => {
    expect(maskOf([" pass word "]).text("echo pass word")).toBe("echo ***");
  });

  test("up to the point where the output was truncated", () => {
    const token = `eyJ${"abcdefghij".repeat(80)}`;
    expect(maskOf([token]).text(`refused: ${token.slice(0, 500)}... (cut)`)).toBe("refused: ***... (cut)");
    expect(maskOf([token]).text("eyJabcdefghi, the beginning of any token")).toBe(
      "eyJabcdefghi, the beginning of any token",
    );
  });

  test("in lower case, as in host names", () => {
    expect(maskOf(["MyTenantToken"]).text("GET http://mytenanttoken.invalid/")).toBe("GET http://***.invalid/");
  });

  test("if it is a number", () => {
    expect(maskOf(["12345678"]).json({ pin: 12_345_678, count: 1 })).toEqual({ pin: "***", count: 1 });
  });

  test("in values that are not strings", () => {
    expect(maskOf(["abcd"]).text({ toString: () => "abcd" })).toBe("***");
    expect(maskOf(["abcd"]).text(undefined)).toBe("undefined");
  });

  test("once, where two of them overlap", () => {
    expect(maskOf(["abcd", "cdef"]).text("abcdef cdef")).toBe("***ef ***");
    expect(maskOf(["abcdefgh", "ghij"]).text("abcdefghij ghij")).toBe("***ij ***");
  });

  test("the longer one first, if one is a prefix of another", () => {
    expect(maskOf(["abcd", "abcdefgh"]).text("abcdefgh abcd")).toBe("*** ***");
  });
});

test("for any secret and any text around it, the masked text does not contain it", () => {
  const secret = fc.string({ minLength: 4, maxLength: 40 }).filter((text) => !text.includes("*"));
  fc.assert(
    fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
      const { text } = maskOf([value]);
      for (const form of [value, encodeURIComponent(value), JSON.stringify(value)]) {
        expect(text(before + form + after)).not.toContain(value);
      }
    }),
  );
});

describe("in a body", () => {
  const secret = "p\"w/d 1é'";
  const mask = maskOf([secret]);

  test.each([
    ["utf8", `{"api-key":${JSON.stringify(secret)},"n":1}`, '{"api-key":"***","n":1}'],
    ["latin1", `key: ${secret} ü`, "key: *** ü"],
  ] as const)("a secret is masked, be it in %s", (encoding, body, masked) => {
    expect(mask.bytes(Buffer.from(body, encoding))).toEqual(Buffer.from(masked, encoding));
  });

  test("a number stays a number", () => {
    const body = maskOf(["12345678"]).bytes(Buffer.from('{"key":12345678,"text":"12345678"}'));
    expect(JSON.parse(body.toString())).toEqual({ key: 0, text: "0" });
  });

  test("without one it is not copied", () => {
    const body = Buffer.from("nothing of it");
    expect(mask.bytes(body)).toBe(body);
    expect(NO_MASK.bytes(body)).toBe(body);
  });

  test("for any bytes around it, it is gone", () => {
    const around = fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes));
    const value = fc
      .string({ minLength: 4, maxLength: 40 })
      .filter((text) => !text.includes("*") && !/^\d+$/.test(text));
    fc.assert(
      fc.property(value, around, around, (text, before, after) => {
        const body = Buffer.concat([before, Buffer.from(text), after]);
        expect(maskOf([text]).bytes(body).includes(text)).toBe(false);
      }),
    );
  });
});

test("without a secret nothing is changed", () => {
  expect(maskOf([])).toBe(NO_MASK);
  const value = { a: ["x"] };
  expect(NO_MASK.json(value)).toBe(value);
  expect(NO_MASK.text("x")).toBe("x");
});

test("a key of many lines costs a large artifact little more than one line does", () => {
  const artifact = Array.from({ length: 20_000 }, (_, id) => ({ id, name: `customer ${id}`, city: "Rotterdam" }));
  const millisecondsWith = (lines: number) => {
    const secret = Array.from({ length: lines }, (_, line) => `line ${line} of a certificate chain`).join("\n");
    const mask = maskOf([secret]);
    const started = performance.now();
    expect(mask.json(artifact)).toEqual(artifact);
    return performance.now() - started;
  };
  millisecondsWith(1); // Warms up the JIT.
  expect(millisecondsWith(500)).toBeLessThan(50 * millisecondsWith(1)); // Searching form by form takes 1,000 times as long.
});
