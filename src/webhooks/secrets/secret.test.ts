import { describe, expect, test } from "vitest";
import { redactor } from "./redact.ts";
import { parseSecret } from "./secret.ts";

const refusal = (text: string): string => {
  try {
    parseSecret(text);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it was accepted");
};

describe("a secret", () => {
  test.each([
    ["Query,token,abc123", { type: "Query", key: "token", value: "abc123" }],
    ["Header,Authorization,Bearer xxx", { type: "Header", key: "Authorization", value: "Bearer xxx" }],
    ['Body,json,{"appId":"xxx"}', { type: "Body", key: "json", value: '{"appId":"xxx"}' }],
    ["Query,token,a,b,,c", { type: "Query", key: "token", value: "a,b,,c" }],
    ["Query,token,line\nbreak", { type: "Query", key: "token", value: "line\nbreak" }],
    ['Body,json,{"a":1,"b":[1,2]}', { type: "Body", key: "json", value: '{"a":1,"b":[1,2]}' }],
  ])("%s is read as a triple", (text, secret) => {
    expect(parseSecret(text)).toEqual(secret);
  });

  test.each([
    ["hunter2", "must be `Type,Key,Value`"],
    ["Header,hunter2", "must be `Type,Key,Value`"],
    ["header,X-Key,hunter2", "Did you mean `Header`?"],
    ["Header ,X-Key,hunter2", "Did you mean `Header`?"],
    ["Querry,key,hunter2", "Did you mean `Query`?"],
    ["Cookie,key,hunter2", "its type must be exactly `Query`, `Header`, `Body`"],
    ["Query,,hunter2", "its key must have 1 to 128 characters"],
    ["Query, token,hunter2", "without spaces around it"],
    ["Query,token,", "its value is empty"],
    ["Header,X Key,hunter2", "not the name of a header"],
    ["Header,X-Key,hunter2\r\nX-Other: 1", "no line breaks"],
    ["Header,X-Key,hunter2 ", "spaces between them"],
    ["Header,X-Key,hünter2", "visible ASCII"],
    ["Header,Host,hunter2", "a header that the delivery itself sets"],
    ["Header,content-Length,hunter2", "a header that the delivery itself sets"],
    ["Header,Webhook-Signature,hunter2", "a header that the delivery itself sets"],
    ['Body,JSON,{"a":"hunter2"}', "Did you mean `json`?"],
    ["Body,json,{hunter2}", "must be JSON"],
    ['Body,json,["hunter2"]', "must be a JSON object"],
    ["Body,json,null", "must be a JSON object"],
    ['Body,json,{"__proto__":{"a":"hunter2"}}', "`__proto__`"],
    [`Body,json,${'{"a":'.repeat(40)}1${"}".repeat(40)}`, "levels deep"],
    [`Query,token,${"x".repeat(2_000)}`, "longer than 2000 characters"],
  ])("%j is refused with a sentence that does not quote it", (text, reason) => {
    expect(refusal(text)).toContain(reason);
    expect(refusal(text)).not.toContain("hunter2");
  });
});

describe("a stored answer", () => {
  test.each([
    ["Query,token,a b/c", "you sent a b/c, a%20b%2Fc and a+b%2Fc", "you sent [redacted], [redacted] and [redacted]"],
    [
      "Header,Authorization,Bearer xxx",
      '{"authorization":"Bearer xxx","token":"xxx"}',
      '{"authorization":"[redacted]","token":"[redacted]"}',
    ],
    [
      'Body,json,{"a":{"pin":4711,"q":"say \\"hi\\""},"ok":true}',
      'pin 4711, say "hi", say \\"hi\\", true',
      "pin [redacted], [redacted], [redacted], true",
    ],
    ["Query,flag,1", "HTTP 1", "HTTP 1"],
  ])("has the secret %s removed", (text, answer, stored) => {
    expect(redactor(parseSecret(text))(answer)).toBe(stored);
  });

  test("stays as it is without a secret", () => {
    expect(redactor(undefined)("all well")).toBe("all well");
  });
});
