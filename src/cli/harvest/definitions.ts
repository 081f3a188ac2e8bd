/** `millrace harvest apply`, `validate` and `diff`: definitions of sources from files. */
import { OperatorError } from "../../kernel/errors.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { type Client, pathTo, Refusal, type Request } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import type { Command, Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { type FieldChange, fieldLines } from "../common/field-changes.ts";
import { readInputFile } from "../common/input-file.ts";
import { printable } from "../common/output.ts";
import type { DefinitionFile, DefinitionProblem } from "./file.ts";

interface Compared {
  source: string;
  outcome: "created" | "changed" | "unchanged";
  changes: FieldChange[];
}
interface Applied extends Compared {
  revision: number;
  baseUrl: string;
  baseUrlOverride: string | null;
  warnings: DefinitionProblem[];
}
interface Validated {
  valid: boolean;
  problems: DefinitionProblem[];
  warnings: DefinitionProblem[];
  endpoints: { endpoint: string; specFingerprint: string | null; needs: string[] }[];
}

/** The reply for a file, with its warnings as lines. */
type OfFile<Reply> = Reply & { file: string; notes: string[] };

const SOURCES = "api/v1/harvest/registry/sources";
const BASE_URL: Flag = {
  usage: "--base-url <url>",
  description: "Use this address instead of the baseUrl of the files: a mirror, a proxy or a simulator.",
};

const apply = serverCommand<OfFile<Applied>[]>({
  summary: "Create or change sources from files",
  details: `Each FILE is YAML or JSON and defines one source; - is standard input.

  source: shop
  name: Orders of the shop
  baseUrl: https://api.example.org
  credentials: { key: { env: SHOP_KEY } }
  endpoints:
    orders:
      path: /orders
      auth: { type: API_KEY, location: HEADER, name: x-key, credential: key }
      http:
        query: { since: "\${window.from}", until: "\${window.to}", offset: "\${page.offset}" }
      pagination: { type: OFFSET, pageSize: 100 }
      window: { watermarkKey: updated, supportsUpdatedSince: true, granularity: PT1S }
      response: { itemsPath: $.orders, idPath: $.id, updatedAtPath: $.updated, totalPath: $.total }
      rateLimit: { refillRatePerSec: 5 }
  schedules:
    hourly: { cron: "5 * * * *" }

All files are checked before the first is applied. Applying a file again changes nothing. An endpoint that is no longer in the file
is removed, and its records stay. Without --base-url the source is asked at the address in its file, also if it was applied with
--base-url before. Plans that exist go on as they were made.`,
  args: "FILE...",
  flags: [BASE_URL, { usage: "--dry-run", description: "Only check the files and show the changes." }],
  examples: [
    "millrace harvest apply crossref.yaml pubmed.yaml --dry-run",
    "millrace harvest apply crossref.yaml --base-url http://localhost:7501",
  ],
  async execute(client, given) {
    const files = await filesOf(given);
    const put = ({ source, content }: DefinitionFile, dryRun: boolean): Request => ({
      method: "PUT",
      // A file without a source is refused for that.
      path: pathTo`api/v1/harvest/registry/sources/${source || "unnamed"}`,
      query: { dryRun, baseUrl: given.maybeText("--base-url") },
      body: content,
    });
    const checked = await forEach<Applied>(client, files, (file) => put(file, true));
    return given.isOn("--dry-run") ? checked : forEach<Applied>(client, files, (file) => put(file, false));
  },
  show(replies, given) {
    const isDry = given.isOn("--dry-run");
    return replies.map((reply) => [...appliedLines(reply, isDry), ...reply.notes].join("\n")).join("\n");
  },
});

const validate = serverCommand<OfFile<Validated>[]>({
  summary: "Check files of sources, and compile their endpoints",
  details: `The server checks the files and changes nothing. Each problem is printed on one line, with its place in the file. The exit
code is ${EXIT.usage} if a file cannot be applied.`,
  args: "FILE...",
  flags: [BASE_URL],
  examples: ["millrace harvest validate sources/*.yaml"],
  async execute(client, given) {
    const files = await filesOf(given);
    const query = { baseUrl: given.maybeText("--base-url") };
    const replies = await forEach<Validated>(client, files, ({ content }) => ({
      method: "POST",
      path: `${SOURCES}:validate`,
      query,
      body: content,
    }));
    return replies.map((reply, index) => ({
      ...reply,
      notes: [...reply.problems.map((problem) => complaint(files[index], problem)), ...reply.notes],
    }));
  },
  show: (replies) =>
    replies
      .flatMap(({ file, valid, endpoints, notes }) => [
        ...notes,
        ...(valid ? [`${file} is valid: ${counted(endpoints.length, "endpoint")} to harvest.`] : []),
      ])
      .join("\n"),
  exitCode: (replies) => (replies.every(({ valid }) => valid) ? EXIT.ok : EXIT.usage),
});

const diff = serverCommand<OfFile<Compared>[]>({
  summary: "Show how files of sources differ from what is applied",
  details: `The exit code is ${EXIT.failed} if a file differs, as that of diff.`,
  args: "FILE...",
  flags: [BASE_URL],
  examples: ["millrace harvest diff crossref.yaml"],
  async execute(client, given) {
    const query = { baseUrl: given.maybeText("--base-url") };
    return forEach<Compared>(client, await filesOf(given), ({ content }) => ({
      method: "POST",
      path: `${SOURCES}:diff`,
      query,
      body: content,
    }));
  },
  show: (replies) => replies.flatMap(differenceLines).join("\n"),
  exitCode: (replies) => (replies.every(({ outcome }) => outcome === "unchanged") ? EXIT.ok : EXIT.failed),
});

export const definitions: Readonly<Record<string, Command>> = { apply, validate, diff };

async function filesOf(given: Given): Promise<DefinitionFile[]> {
  // Imported here, because the YAML library is slow to load and other commands do not need it.
  const { parseDefinitionFile } = await import("./file.ts");
  const names = given.texts("FILE");
  const texts = await Promise.all(names.map(readInputFile));
  return texts.map((text, index) => {
    const name = names[index] as string;
    return parseDefinitionFile(name === "-" ? "standard input" : name, text);
  });
}

/** One call for each file. If the server refuses some for their content, the problems of all are thrown together. */
async function forEach<Reply extends object>(
  client: Client,
  files: readonly DefinitionFile[],
  request: (file: DefinitionFile) => Request,
): Promise<OfFile<Reply>[]> {
  const replies: OfFile<Reply>[] = [];
  const refused: Refusal[] = [];
  for (const file of files) {
    try {
      const reply = await client.call<Reply & { warnings?: DefinitionProblem[] }>(request(file));
      const notes = (reply.warnings ?? []).map((problem) => `Warning: ${complaint(file, problem)}`);
      replies.push({ file: printable(file.filename), ...reply, notes });
    } catch (error) {
      const { details } = (error instanceof Refusal ? error.body : {}) as {
        details?: { problems?: DefinitionProblem[] };
      };
      if (!(error instanceof Refusal) || !details?.problems) throw error;
      refused.push(error.withMessage(details.problems.map((problem) => complaint(file, problem)).join("\n")));
    }
  }
  const [first] = refused;
  if (!first) return replies;
  throw refused.length === 1 ? first : new OperatorError(refused.map(({ message }) => message).join("\n"), EXIT.usage);
}

function complaint(file: DefinitionFile | undefined, problem: DefinitionProblem): string {
  return file?.complaint(problem) ?? problem.reason;
}

function appliedLines(applied: Applied, isDry: boolean): string[] {
  const { source, outcome, revision, changes, baseUrl, baseUrlOverride } = applied;
  const name = printable(source);
  const isBack = changes.some(({ field, to }) => field === "baseUrlOverride" && to === null);
  const address = baseUrlOverride ?? (isBack ? baseUrl : undefined);
  return [
    {
      created: isDry ? `${name} would be created.` : `Created ${name}, revision ${revision}.`,
      changed: isDry ? `${name} would be changed:` : `Changed ${name} to revision ${revision}:`,
      unchanged: `${name} is unchanged, revision ${revision}.`,
    }[outcome],
    ...changeLines(changes),
    ...(address === undefined
      ? []
      : [`  Its address is ${printable(address)}${isBack ? " again" : ", not that of the file"}.`]),
  ];
}

function differenceLines({ source, outcome, changes }: Compared): string[] {
  const name = printable(source);
  const first = {
    created: `${name} does not exist yet.`,
    changed: `${name} differs:`,
    unchanged: `${name} is unchanged.`,
  }[outcome];
  return [first, ...changeLines(changes)];
}

function changeLines(changes: readonly FieldChange[]): string[] {
  return changes.flatMap(fieldLines).map((line) => `  ${line}`);
}
