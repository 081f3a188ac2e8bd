import type { LookupAddress, lookup } from "node:dns";
import { describe, expect, test } from "vitest";
import { publicOnly } from "./outbound-guard.ts";
import { parseHostPort } from "./outbound-url.ts";

describe("publicOnly", () => {
  const finding = (...addresses: string[]) =>
    ((_name: string, _options: object, callback: (error: null, found: LookupAddress[]) => void) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      )) as unknown as typeof lookup;

  const resolve = (name: string, options: { all?: boolean }, resolver: typeof lookup) =>
    new Promise<unknown>((found, failed) => {
      publicOnly(resolver)(name, options, (error, ...result) => (error ? failed(error) : found(result)));
    });

  test("keeps the public addresses of a name that has others as well", async () => {
    const mixed = finding("10.0.0.5", "1.1.1.1", "::1", "2606:4700::1");
    expect(await resolve("mixed.test", { all: true }, mixed)).toEqual([
      [
        { address: "1.1.1.1", family: 4 },
        { address: "2606:4700::1", family: 6 },
      ],
    ]);
    expect(await resolve("mixed.test", {}, mixed)).toEqual(["1.1.1.1", 4]);
  });

  test("refuses a name that has none, and names what it resolves to", async () => {
    await expect(resolve("db.test", { all: true }, finding("10.0.0.5", "::ffff:1.1.1.1"))).rejects.toThrow(
      "db.test resolves to 10.0.0.5, ::ffff:1.1.1.1, which is not a public address",
    );
  });
});

test("a host and port is written in one way, and nothing else is one", () => {
  expect(["Example.ORG:443", "localhost:80", "[::1]:8080", "0x7f.1:1"].map(parseHostPort)).toEqual([
    "example.org:443",
    "localhost:80",
    "[::1]:8080",
    "127.0.0.1:1",
  ]);
  const others = [
    "",
    "localhost",
    "::1:80",
    "http://localhost:80",
    "localhost:80/x",
    "u@localhost:80",
    "a b:80",
    "a:99999",
  ];
  expect(others.map(parseHostPort)).toEqual(others.map(() => undefined));
});
