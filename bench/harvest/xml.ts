/**
 * Articles of PubMed from XML to records, beside a saxes loop that makes a tree and JSON of each, as one would write it for this
 * source alone, and beside a saxes parser whose handlers only count. Millrace parses with saxes too, so nothing it does could
 * make it faster than that last one.
 */
import { readFile } from "node:fs/promises";
import { SaxesParser } from "saxes";
import { parse } from "yaml";
import { compileDecoder } from "../../src/harvest/decode/index.ts";
import { parseDefinition } from "../../src/harvest/definition/definition.ts";
import { compileSpec } from "../../src/harvest/spec/compile.ts";
import type { EndpointSpec } from "../../src/harvest/spec/snapshot.ts";
import { startPubmed } from "../../src/simulators/index.ts";
import { atLeast, printMarkdown, times, withGoal } from "../chains/report.ts";
import { type Contender, formatNumber, interleave, median, perSecond } from "../measure.ts";

const BODIES = 50;
const ARTICLES_EACH = 200;
const ARTICLES = BODIES * ARTICLES_EACH;
const ANSWER = { status: 200, headers: { "content-type": "text/xml; charset=UTF-8" }, attempt: 1 };

export async function compareXml(rounds: number): Promise<void> {
  const bodies = await articles();
  const decoder = compileDecoder(await efetchSpec());
  const ours: Contender = {
    name: "Millrace, pages and records",
    round: () =>
      perSecond(ARTICLES, async () => {
        let records = 0;
        for (const body of bodies) {
          const { page } = decoder.read({ ...ANSWER, body });
          for (const item of page?.items ?? []) if ("key" in item) records += 1;
        }
        if (records !== ARTICLES) throw new Error(`${records} of ${ARTICLES} articles were decoded`);
      }),
  };
  const bare: Contender = {
    name: "bare loop: saxes, a tree, its JSON",
    round: () =>
      perSecond(ARTICLES, async () => {
        let count = 0;
        for (const body of bodies) count += articlesAsJson(body).length;
        if (count !== ARTICLES) throw new Error(`${count} of ${ARTICLES} articles were read`);
      }),
  };
  const limit: Contender = {
    name: "saxes, only counting (limit)",
    round: () =>
      perSecond(ARTICLES, async () => {
        let count = 0;
        for (const body of bodies) count += countArticles(body);
        if (count !== ARTICLES) throw new Error(`${count} of ${ARTICLES} articles were parsed`);
      }),
  };
  const figures = await interleave([ours, bare, limit], rounds, console.error);
  const of = ({ name }: Contender) => median(figures.get(name) ?? []);
  const ratio = of(ours) / of(bare);
  const size = bodies.reduce((sum, { length }) => sum + length, 0) / ARTICLES;
  printMarkdown(
    `XML of PubMed, ${formatNumber(size)} bytes an article, ${ARTICLES_EACH} a page`,
    ["", "median", "Millrace is", "goal"],
    [
      [`**${ours.name}**`, `${formatNumber(of(ours))} articles/s`, "", ""],
      [bare.name, `${formatNumber(of(bare))} articles/s`, times(ratio), withGoal(ratio, atLeast(0.5))],
      [limit.name, `${formatNumber(of(limit))} articles/s`, times(of(ours) / of(limit)), ""],
    ],
  );
}

interface Element {
  attributes: Record<string, string>;
  children: Record<string, Element[]>;
  text: string;
}

/** Without hashes, keys, mixed content, limits and repairs. */
function articlesAsJson(body: Buffer): string[] {
  const parser = new SaxesParser();
  const texts: string[] = [];
  const open: Element[] = [];
  parser.on("opentag", ({ attributes }) => open.push({ attributes, children: {}, text: "" }));
  parser.on("text", (text) => {
    const element = open.at(-1);
    if (element) element.text += text;
  });
  parser.on("closetag", ({ name }) => {
    const element = open.pop()!;
    const parent = open.at(-1);
    if (isArticle(name)) texts.push(JSON.stringify(element));
    else if (parent) (parent.children[name] ??= []).push(element);
  });
  parser.write(body.toString()).close();
  return texts;
}

function countArticles(body: Buffer): number {
  const parser = new SaxesParser();
  let count = 0;
  let characters = 0;
  parser.on("opentag", ({ name }) => {
    if (isArticle(name)) count += 1;
  });
  parser.on("text", ({ length }) => {
    characters += length;
  });
  parser.on("closetag", () => {});
  parser.write(body.toString()).close();
  if (characters === 0) throw new Error("the articles have no text");
  return count;
}

function isArticle(name: string): boolean {
  return name === "PubmedArticle" || name === "PubmedBookArticle";
}

/** As the simulator answers them. */
async function articles(): Promise<Buffer[]> {
  const simulator = await startPubmed({ days: ["2026-08-01"], recordsPerDay: ARTICLES, unlimited: true });
  const ids = simulator.records().map(({ id }) => id);
  const bodies: Buffer[] = [];
  for (let start = 0; start < ids.length; start += ARTICLES_EACH) {
    const id = ids.slice(start, start + ARTICLES_EACH).join(",");
    const body = new URLSearchParams({ db: "pubmed", retmode: "xml", id });
    const response = await fetch(`${simulator.baseUrl}/efetch.fcgi`, { method: "POST", body });
    bodies.push(Buffer.from(await response.arrayBuffer()));
  }
  await simulator.close();
  return bodies;
}

async function efetchSpec(): Promise<EndpointSpec> {
  const file = await readFile(new URL("../../sources/pubmed.yaml", import.meta.url), "utf8");
  const parsed = parseDefinition(parse(file));
  if ("problems" in parsed) throw new Error(JSON.stringify(parsed.problems));
  const outcome = compileSpec({ definition: parsed.definition, endpointName: "esearch", operation: "HARVEST" });
  const detail = "compiled" in outcome ? outcome.compiled.snapshot.detail : undefined;
  if (!detail) throw new Error("pubmed.yaml does not compile");
  return detail;
}
