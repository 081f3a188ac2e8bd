/** How the answers of the recorded services are read: by the definitions that are shipped, and a small spec for each other shape. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { parseDefinition } from "../definition/definition.ts";
import { compileSpec } from "../spec/compile.ts";
import type { EndpointSpec, Operation } from "../spec/snapshot.ts";
import { endpointSpec, type Given } from "./spec.fixture.ts";

type Response = Given["response"];

const json = (itemsPath: string, idPath: string, totalPath?: string, pagination: Given["pagination"] = {}): Given => ({
  response: { itemsPath, idPath, ...(totalPath !== undefined && { totalPath }) },
  pagination,
});

const xml = (
  family: NonNullable<Given["family"]>,
  response: Response,
  pagination: Given["pagination"] = {},
): Given => ({
  family,
  response: { format: "XML", ...response },
  pagination,
});

function oai(verb: string, element: string, idPath: string, deletedPath: string): Given {
  const token = `$['OAI-PMH'].${verb}[0].resumptionToken[0]`;
  return xml(
    "OAI",
    {
      itemsPath: `$['OAI-PMH'].${verb}[0].${element}`,
      idPath,
      totalPath: `${token}['@completeListSize']`,
      deletedPath,
      deletedValues: ["deleted"],
    },
    { nextTokenPath: token },
  );
}

const crossref = { nextTokenPath: "$.message['next-cursor']" };
const openalex = { nextTokenPath: "$.meta.next_cursor" };

const GIVEN: Readonly<Record<string, Given>> = {
  "crossref-events": json("$.message.events", "$.id", "$.message['total-results']", crossref),
  "esearch-xml": xml("NCBI", {
    itemsPath: "$.eSearchResult.IdList[0].Id",
    idPath: "$",
    totalPath: "$.eSearchResult.Count[0]",
  }),
  epost: xml(
    "NCBI",
    { itemsPath: "$.ePostResult.QueryKey", idPath: "$" },
    { nextTokenPath: "$.ePostResult.WebEnv[0]" },
  ),
  esummary: xml("NCBI", { itemsPath: "$.eSummaryResult.DocSum", idPath: "$.Id[0]" }),
  "pmc-efetch": xml("NCBI", {
    itemsPath: "$['pmc-articleset'].article",
    idPath: "$.front[0]['article-meta'][0]['article-id'][?@['@pub-id-type'] == 'pmcid']",
  }),
  "europepmc-xml": xml(
    "REST_JSON",
    {
      itemsPath: "$.responseWrapper.resultList[0].result",
      idPath: "$.id[0]",
      totalPath: "$.responseWrapper.hitCount[0]",
    },
    { nextTokenPath: "$.responseWrapper.nextCursorMark[0]" },
  ),
  "europepmc-citations": json("$.citationList.citation", "$.id", "$.hitCount"),
  "openalex-groups": json("$.group_by", "$.key", "$.meta.count", openalex),
  "oai-records": oai("ListRecords", "record", "$.header[0].identifier[0]", "$.header[0]['@status']"),
  "oai-record": xml("OAI", { itemsPath: "$['OAI-PMH'].GetRecord[0].record", idPath: "$.header[0].identifier[0]" }),
  "oai-identifiers": oai("ListIdentifiers", "header", "$.identifier[0]", "$['@status']"),
  "oai-identify": xml("OAI", { itemsPath: "$['OAI-PMH'].Identify", idPath: "$.repositoryName[0]" }),
  "oai-sets": oai("ListSets", "set", "$.setSpec[0]", "$['@status']"),
  rss: xml("REST_JSON", { itemsPath: "$.RDF.item", idPath: "$['@about']" }),
  trial: json("$", "$.protocolSection.identificationModule.nctId"),
  "trials-xml": xml("REST_JSON", {
    itemsPath: "$.search_results.clinical_study",
    idPath: "$.nct_id[0]",
    totalPath: "$.search_results['@count']",
  }),
  "datacite-activities": json("$.data", "$.id", "$.meta.total", { nextUrlPath: "$.links.next" }),
  orcid: json("$.result", "$['orcid-identifier'].path", "$['num-found']"),
  "s2-search": json("$.data", "$.paperId", "$.total", { nextTokenPath: "$.next" }),
  "s2-references": json("$.data", "$.citedPaper.paperId", undefined, { nextTokenPath: "$.next" }),
  "s2-batch": json("$", "$.paperId"),
  doaj: json("$.results", "$.id", "$.total", { nextUrlPath: "$.next" }),
  openaire: json("$.results", "$.id", "$.header.numFound"),
  "zenodo-rest": json("$.hits.hits", "$.id", "$.hits.total", { nextUrlPath: "$.links.next" }),
  dblp: xml("REST_JSON", {
    itemsPath: "$.dblp",
    itemElements: ["article", "inproceedings", "proceedings"],
    idPath: "$['@key']",
  }),
  "dblp-search": xml("REST_JSON", {
    itemsPath: "$.result.hits[0].hit",
    idPath: "$['@id']",
    totalPath: "$.result.hits[0]['@total']",
  }),
};

function shipped(
  source: string,
  endpointName: string,
  operation: Operation = "HARVEST",
): { spec: EndpointSpec; detail?: EndpointSpec } {
  const file = new URL(`../../../sources/${source}.yaml`, import.meta.url);
  const parsed = parseDefinition(parse(readFileSync(file, "utf8")));
  if ("problems" in parsed) throw new Error(JSON.stringify(parsed.problems));
  const result = compileSpec({ definition: parsed.definition, endpointName, operation });
  if ("problems" in result) throw new Error(JSON.stringify(result.problems));
  return result.compiled.snapshot;
}

const pubmed = shipped("pubmed", "esearch");

export const KINDS: Readonly<Record<string, EndpointSpec>> = {
  "crossref-list": shipped("crossref", "works").spec,
  "crossref-work": shipped("crossref", "works", "UPDATE").detail!,
  "esearch-json": pubmed.spec,
  efetch: pubmed.detail!,
  arxiv: shipped("arxiv", "records").spec,
  "arxiv-record": shipped("arxiv", "records", "UPDATE").detail!,
  europepmc: shipped("europepmc", "search").spec,
  openalex: shipped("openalex", "works").spec,
  "openalex-work": shipped("openalex", "works", "UPDATE").detail!,
  datacite: shipped("datacite", "dois").spec,
  biorxiv: shipped("biorxiv", "biorxiv").spec,
  "s2-bulk": shipped("semanticscholar", "papers").spec,
  zenodo: shipped("zenodo", "records").spec,
  ...Object.fromEntries(Object.entries(GIVEN).map(([kind, given]) => [kind, endpointSpec(given)])),
};
