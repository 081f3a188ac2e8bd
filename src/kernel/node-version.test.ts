import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { nodeAdvice } from "./node-version.ts";

test.each(["20.19.0", "20.20.1", "22.0.0", "24.1.0", "100.0.0"])("Node %s will do", (version) => {
  expect(nodeAdvice(version)).toBeUndefined();
});

test.each(["20.0.0", "20.9.9", "20.18.3", "18.20.4", "9.11.2"])(
  "Node %s is too old, which package.json says too",
  (version) => {
    const { engines } = JSON.parse(readFileSync("package.json", "utf8")) as { engines: { node: string } };
    expect(nodeAdvice(version)).toBe(`Run it on Node ${engines.node.replace(">=", "")} or newer.`);
  },
);
