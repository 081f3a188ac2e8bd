/** `millrace chain apply`: creates or updates a chain from a file, so that definitions can be kept in a repository. */
import { counted } from "../../kernel/text/sentences.ts";
import { type Client, pathTo, Refusal } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { readInputFile } from "../common/input-file.ts";
import { printable } from "../common/output.ts";
import { type ChainDetail, findChainByName } from "./api.ts";
import type { ChainFile, DagProblem } from "./file.ts";

type Applied =
  | { outcome: "valid"; name: string; nodes: number }
  | { outcome: "created" | "updated" | "unchanged"; name: string; chainId: string; version: number; enabled: boolean };

export const apply = serverCommand<Applied>({
  summary: "Create or update a chain from a file",
  details: `FILE is YAML or JSON; - is standard input. The chain is found by its name. Fields that the file does not
have, such as enabled, are not changed.

  name: daily
  description: Orders of a day
  maxActiveRuns: 1
  nodes:
    - id: extract
      type: http
      cfg: { method: GET, url: "https://example.com/orders?day=\${opTime}" }
      retry: { maxAttempts: 3, backoffMs: 1000 }
    - id: publish
      type: noop
      dependsOn: [extract]

Applying the same file again changes nothing. Each problem is printed on one line, with its place in the file.`,
  args: "FILE",
  flags: [{ usage: "--dry-run", description: "Only check the file; change nothing." }],
  examples: ["millrace chain apply daily.yaml", "millrace chain apply daily.yaml --dry-run"],
  async execute(client, given) {
    const filename = given.text("FILE");
    const text = await readInputFile(filename);
    // Imported here, because the YAML library is slow to load and other commands do not need it.
    const { parseChainFile } = await import("./file.ts");
    const file = parseChainFile(filename === "-" ? "standard input" : filename, text);
    try {
      return given.isOn("--dry-run") ? await check(client, file) : await createOrUpdate(client, file);
    } catch (error) {
      throw withPlaces(error, file);
    }
  },
  show(applied) {
    const name = printable(applied.name);
    if (applied.outcome === "valid") return `${name} is valid: ${counted(applied.nodes, "node")}.`;
    const isDisabled = applied.enabled ? "" : " It is disabled.";
    switch (applied.outcome) {
      case "created":
        return `Created ${name}, version ${applied.version}.${isDisabled}`;
      case "updated":
        return `Updated ${name} to version ${applied.version}.${isDisabled}`;
      case "unchanged":
        return `${name} is unchanged, version ${applied.version}.${isDisabled}`;
    }
  },
});

async function check(client: Client, file: ChainFile): Promise<Applied> {
  const { name } = file;
  const found = await findChainByName(client, name);
  const query = { dryRun: true };
  if (!found) {
    const body = bodyOf(file);
    const { nodes } = await client.call<{ nodes: number }>({ method: "POST", path: "api/v1/chains", query, body });
    return { outcome: "valid", name, nodes };
  }
  const path = pathTo`api/v1/chains/${found.chainId}`;
  const { version } = await client.call<ChainDetail>({ method: "GET", path });
  const { dag } = await client.call<ChainDetail>({ method: "PUT", path, query, body: { ...bodyOf(file), version } });
  return { outcome: "valid", name, nodes: dag.nodes.length };
}

function bodyOf({ name, settings, dag }: ChainFile): Record<string, unknown> {
  return { name, ...settings, dagJson: dag };
}

async function createOrUpdate(client: Client, { name, settings, enabled, dag }: ChainFile): Promise<Applied> {
  const { canonicalJson } = await import("../../kernel/json/canonical.ts");
  const found = await findChainByName(client, name);
  if (!found) {
    const body = { name, ...settings, enabled, dagJson: dag };
    return asApplied("created", await client.call<ChainDetail>({ method: "POST", path: "api/v1/chains", body }));
  }
  const path = pathTo`api/v1/chains/${found.chainId}`;
  const present = await client.call<ChainDetail>({ method: "GET", path });
  const { description, maxActiveRuns, runTimeoutMs } = present;
  const kept = { description, maxActiveRuns, runTimeoutMs };
  let chain = present;
  if (canonicalJson({ ...kept, dag: present.dag }) !== canonicalJson({ ...kept, ...settings, dag })) {
    const body = { name, ...kept, ...settings, dagJson: dag, version: present.version };
    chain = await client.call<ChainDetail>({ method: "PUT", path, body });
  }
  if (enabled !== undefined && enabled !== present.enabled) {
    chain = await client.call<ChainDetail>({ method: "POST", path: `${path}:${enabled ? "enable" : "disable"}` });
  }
  return asApplied(chain === present ? "unchanged" : "updated", chain);
}

function asApplied(
  outcome: "created" | "updated" | "unchanged",
  { name, chainId, version, enabled }: ChainDetail,
): Applied {
  return { outcome, name, chainId, version, enabled };
}

/** Replaces a refusal of the DAG by its problems, each with its place in the file. */
function withPlaces(error: unknown, file: ChainFile): unknown {
  if (!(error instanceof Refusal)) return error;
  const { details } = error.body as { details?: { problems?: DagProblem[] } };
  return details?.problems ? error.withMessage(details.problems.map(file.complaint).join("\n")) : error;
}
