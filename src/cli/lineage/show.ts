/** `millrace lineage show`: all details of an asset. */
import { pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { indent, sections } from "../common/help.ts";
import { clip, padEnd, paint, printable, table, toSeconds } from "../common/output.ts";
import { type Asset, assetIdOf, type LineageEvent, TENANT_FLAG, tenantOf } from "./api.ts";
import { eventTable } from "./events.ts";

type Attributes = Record<string, unknown>;

interface Detail extends Asset {
  attributes: Attributes;
  columns: { name: string; attributes: Attributes; valueDomains: string[] }[];
  hasMoreColumns: boolean;
  children: Asset[];
  childrenNext: string | null;
  tags: { name: string }[];
  valueDomains: { code: string }[];
  summary: { text: string; tags: string[] } | null;
  executions: number;
  lastExecutionAt: string | null;
  /** The number of neighbours by relation. */
  neighbours: Record<string, number>;
  neighbourCountMax: number;
  otherNames: number;
  history: LineageEvent[];
  firstSeenAt: string;
  lastSeenAt: string | null;
  /** Null if the asset exists; an older server answers neither of these. */
  droppedAt?: string | null;
  droppedBy?: LineageEvent | null;
}

/** Attributes that have their own section. */
const SHOWN_ELSEWHERE = new Set(["description", "content", "name"]);
const VALUE_WIDTH = 100;

export const show = serverCommand<Detail>({
  summary: "Show all details of an asset",
  details: "Its attributes and columns, what reads and writes it, and the newest events that name it.",
  args: "ASSET",
  flags: [TENANT_FLAG],
  examples: ["millrace lineage show lake.shop.orders", "millrace lineage show 4711 --tenant 7"],
  async execute(client, given) {
    const tenant = await tenantOf(client, given);
    const id = await assetIdOf(client, tenant, given.text("ASSET"));
    return client.call<Detail>({ method: "GET", path: pathTo`api/v1/lineage/assets/${id}`, query: { tenant } });
  },
  show(asset) {
    const { columns, children, history } = asset;
    return sections([
      ["", [headline(asset), ...inLines(asset.description)].join("\n")],
      ["", facts(asset)],
      ["Statement", indent(inLines(textIn(asset.attributes["content"])))],
      ["Summary", indent(inLines(asset.summary?.text ?? null))],
      ["Columns", columns.length === 0 ? "" : columnTable(columns) + more(asset.hasMoreColumns)],
      ["Contains", children.length === 0 ? "" : childTable(children) + more(asset.childrenNext !== null)],
      ["Newest events", history.length === 0 ? "" : eventTable(history)],
    ]);
  },
});

const headline = ({ kind, fullName, id }: Detail) => paint("bold", `${kind} ${printable(fullName)} (id ${id})`);

const more = (isThere: boolean) => (isThere ? "\n(and more)" : "");

function facts(asset: Detail): string {
  const { attributes, tags, valueDomains, executions, neighbours, neighbourCountMax, otherNames } = asset;
  const plain = Object.entries(attributes)
    .filter(([name, value]) => !SHOWN_ELSEWHERE.has(name) && value !== null && value !== "")
    .map(([name, value]): [string, string] => [name, textIn(value) ?? JSON.stringify(value)]);
  const around = Object.entries(neighbours).map(([name, count]) => {
    return `${inWords(name)} ${count}${count >= neighbourCountMax ? " or more" : ""}`;
  });
  const rows: [string, string][] = [
    ...plain,
    ["tags", tags.map(({ name }) => name).join(", ")],
    ["value domains", valueDomains.map(({ code }) => code).join(", ")],
    ["neighbours", around.join(", ")],
    ["executions", executions === 0 ? "" : `${executions}, the last at ${toSeconds(asset.lastExecutionAt)}`],
    ["other names", otherNames === 0 ? "" : String(otherNames)],
    ["known since", toSeconds(asset.firstSeenAt) ?? ""],
    ["last event", toSeconds(asset.lastSeenAt) ?? ""],
    ["dropped", dropOf(asset)],
  ];
  const filled = rows.filter(([, value]) => value !== "");
  const width = Math.max(...filled.map(([name]) => name.length));
  return indent(
    filled.map(([name, value]) => `${padEnd(printable(name), width)}  ${clip(printable(value), VALUE_WIDTH)}`),
  );
}

function dropOf({ droppedAt, droppedBy }: Detail): string {
  if (!droppedAt) return "";
  return `${toSeconds(droppedAt)}${droppedBy ? `, by ${droppedBy.jobName} (event ${droppedBy.id})` : ""}`;
}

/** `writtenBy` to `written by`. */
const inWords = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** A scalar as text; null for a list or an object. */
function textIn(value: unknown): string | null {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

function inLines(text: string | null): string[] {
  return text === null || text === "" ? [] : text.split(/\r?\n/).map(printable);
}

function columnTable(columns: Detail["columns"]): string {
  return table(
    ["COLUMN", "TYPE", "NULLABLE", "VALUE DOMAINS", "DESCRIPTION"],
    columns.map(({ name, attributes, valueDomains }) => [
      name,
      textIn(attributes["dataType"]) ?? undefined,
      textIn(attributes["nullable"]) ?? undefined,
      valueDomains.join(", "),
      textIn(attributes["description"]) ?? undefined,
    ]),
  );
}

function childTable(children: readonly Asset[]): string {
  return table(
    ["ID", "KIND", "NAME", "DESCRIPTION"],
    children.map(({ id, kind, name, description }) => [id, kind, name, description ?? undefined]),
  );
}
