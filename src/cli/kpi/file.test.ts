/** The file of `millrace kpi apply`, and the messages about its mistakes. */
import { describe, expect, test } from "vitest";
import { parseKpiFile } from "./file.ts";

const MODEL = `models:
  MODEL-01:
    name: Orders
    sql: select 1
    dependencies: [{ table: DW_A }]
    kpis: [KD1]
`;
const parse = (text: string, env = {}) => parseKpiFile("kpi.yaml", text, env);

describe("a file", () => {
  test("may have any of its sections, and empty ones", () => {
    const { models, indicators, subscriptions } = parse(`${MODEL}indicators:\n`);
    expect(Object.keys(models)).toEqual(["MODEL-01"]);
    expect({ indicators, subscriptions }).toEqual({ indicators: {}, subscriptions: [] });
  });

  test("takes secrets and URLs from the environment, also parts of them", () => {
    const { subscriptions } = parse(
      `subscriptions:
  - { kpiId: KD1, callbackUrl: "https://\${env.HOST}/hook", secret: "Header,X,Bearer \${env.TOKEN}" }`,
      { HOST: "a.example", TOKEN: "t,1" },
    );
    expect(subscriptions).toEqual([
      { kpiId: "KD1", callbackUrl: "https://a.example/hook", secret: "Header,X,Bearer t,1" },
    ]);
  });

  test.each([
    ["models: [", /^kpi\.yaml:1:10: this is not valid YAML/],
    ["", /^kpi\.yaml:1:1: the file is empty\. Begin with `models:`/],
    ["modles: {}", /^kpi\.yaml:1:1: modles: it is not a field\. Did you mean `models`\?$/],
    [
      `${MODEL}    rerun: aks`,
      /^kpi\.yaml:7:5: models\.MODEL-01\.rerun: it is `aks`\. Accepted: one of auto, ask, ignore\. Did you mean `ask`\?$/,
    ],
    [
      `${MODEL}    retry: { maxAttempt: 3 }`,
      /models\.MODEL-01\.retry\.maxAttempts: it is missing\. Accepted: a whole number from 1 to 1000\.\nkpi\.yaml:7:14: models\.MODEL-01\.retry\.maxAttempt: it is not a field\. Did you mean `maxAttempts`\?$/,
    ],
    [
      `${MODEL}    retry: { maxAttempts: 3, backoff: 1 }`,
      /^kpi\.yaml:7:30: models\.MODEL-01\.retry\.backoff: it is not a field\. Did you mean `backoffMs`\?$/,
    ],
    [
      `${MODEL}    retry: { maxAttempts: often }`,
      /^kpi\.yaml:7:14: models\.MODEL-01\.retry\.maxAttempts: it is text\. Accepted: a whole number from 1 to 1000\.$/,
    ],
    [
      `${MODEL}    retry: 3`,
      /^kpi\.yaml:7:5: models\.MODEL-01\.retry: it is 3\. Accepted: settings maxAttempts, .* or null\.$/,
    ],
    [
      `${MODEL}    expect: { rows: { mim: 1 } }`,
      /^kpi\.yaml:7:\d+: models\.MODEL-01\.expect\.rows\.mim: it is not a field\. Did you mean `min`\?$/,
    ],
    [
      `${MODEL}    publish: later`,
      /^kpi\.yaml:7:5: models\.MODEL-01\.publish: it is text\. Accepted: true or false\.$/,
    ],
    [
      MODEL.replace("table: DW_A", "tabel: DW_A"),
      /^kpi\.yaml:5:20: models\.MODEL-01\.dependencies\[0\]\.table: it is missing.*\n.*dependencies\[0\]\.tabel: .*`table`\?$/,
    ],
    [
      MODEL.replace("kpis: [KD1]", "kpis: [1001]"),
      /^kpi\.yaml:6:12: models\.MODEL-01\.kpis\[0\]: it is 1001\. Accepted: text/,
    ],
    [
      `${MODEL}  MODEL-02: { name: B, chain: c, dependencies: [{ table: DW_A }], kpis: [KD2, KD1] }`,
      /^kpi\.yaml:7:\d+: models\.MODEL-02\.kpis\[1\]: `KD1` is already fed by `MODEL-01`\.$/,
    ],
    [
      `${MODEL}indicators: { KD1: { type: COMPUTED, name: A, expression: KD2 } }`,
      /^kpi\.yaml:6:12: models\.MODEL-01\.kpis\[0\]: `KD1` is COMPUTED in this file; a model feeds EXTENDED ones\.$/,
    ],
    [
      "subscriptions: [{ kpiId: K, callbackUrl: u, status: 2 }]",
      /^kpi\.yaml:1:45: subscriptions\[0\]\.status: it is 2\. Accepted: /,
    ],
    [
      "subscriptions: [{ kpiId: K, callbackUrl: u }, { kpiId: K, callbackUrl: u, teamName: '' }]",
      /^kpi\.yaml:1:47: subscriptions\[1\]: it has the kpiId, callbackUrl and teamName of subscriptions\[0\]\.$/,
    ],
    [
      `subscriptions: [{ kpiId: K, callbackUrl: u, secret: "\${env.NO_SUCH}" }]`,
      /^kpi\.yaml:1:45: subscriptions\[0\]\.secret: the environment variable NO_SUCH is not set\.$/,
    ],
    [
      `subscriptions: [{ kpiId: K, callbackUrl: u, secret: "\${TOKEN}" }]`,
      /subscriptions\[0\]\.secret: only `\$\{env\.NAME\}` is allowed here\.$/,
    ],
  ])("%j is refused with its place", (text, sentence) => {
    expect(() => parse(text)).toThrow(sentence);
  });

  test("reports all mistakes together, and prints no text that may be a secret", () => {
    const text = `${MODEL}    grian: day\nsubscriptions: [{ kpiId: 5, callbackUrl: u, secret: { Header: geheim } }]`;
    const { message } = failureOf(() => parse(text));
    expect(message).toMatch(/grian.*\n.*kpiId.*\n.*secret/);
    expect(message).not.toContain("geheim");
  });
});

function failureOf(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error("it did not fail");
}
