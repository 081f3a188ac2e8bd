/** `millrace harvest records`: the records of a source as lines of JSON, in the order of their changes. */
import { setTimeout as sleepFor } from "node:timers/promises";
import { OperatorError } from "../../kernel/errors.ts";
import { type Client, isTransient } from "../common/client.ts";
import { CLIENT_ENVIRONMENT, CLIENT_FLAGS, clientFor, refusalsAsJson } from "../common/client-command.ts";
import type { Command, Given } from "../common/command.ts";
import { EXIT, INTERRUPTED } from "../common/exit-codes.ts";
import { printable } from "../common/output.ts";
import { stopSignals } from "../common/stop-signals.ts";
import { createEventSplitter } from "../lineage/event-splitter.ts";
import { HARVEST } from "./api.ts";

/** A reply, with the text of each record as the server sent it: a number may have more digits than ours can hold. */
export interface RecordsPage {
  text: string;
  items: string[];
  next: string;
}

const PER_CALL = 1_000;
const POLL_MS = 1_000;
const HEAD = '{"items":';
const TAIL = ',"next":';

export const records: Command = {
  summary: "Print records as lines of JSON, in the order of their changes",
  details: `Each line has key, version, deleted, updatedAt, batch and data; data is the record as the source sent it, XML as JSON. A
record that changes comes again, with its new version. The last line of standard error says with which --after to go on; with --json
it is next of the last reply.`,
  args: "",
  flags: [
    { usage: "--source <name>", description: "Of this source.", required: true },
    { usage: "--endpoint <name>", description: "Of this endpoint (default: the one that the definition names)." },
    { usage: "--key <key>", description: "Only the record with this key." },
    { usage: "--after <position>", description: "Only changes behind this position." },
    { usage: "--follow", description: "Go on with new changes until Ctrl-C." },
    { usage: "--json", description: "Print the replies of the server unchanged: items and, as next, the position." },
    ...CLIENT_FLAGS,
  ],
  environment: CLIENT_ENVIRONMENT,
  examples: [
    "millrace harvest records --source crossref | jq -r .key | head",
    "millrace harvest records --source crossref --key 10.5555/12345678",
    "millrace harvest records --source crossref --follow",
  ],
  async run(given) {
    const key = given.maybeText("--key");
    if (key !== undefined && (given.isOn("--follow") || given.maybeText("--after") !== undefined)) {
      throw new OperatorError("--key cannot be combined with --after and --follow.", EXIT.usage);
    }
    const client = clientFor(given);
    return refusalsAsJson(given, async () =>
      key === undefined ? printChanges(client, given) : printOne(client, given),
    );
  },
};

async function printOne(client: Client, given: Given): Promise<number> {
  const page = await fetchPage(client, given, { key: given.text("--key") });
  if (page.items.length === 0) {
    throw new OperatorError(`There is no record \`${given.text("--key")}\`.`, EXIT.notFound);
  }
  await write(page, given);
  return EXIT.ok;
}

async function printChanges(client: Client, given: Given): Promise<number> {
  const follow = given.isOn("--follow");
  const stopping = stopSignals(() => undefined);
  let after = given.maybeText("--after");
  let isConnected = false;
  let isDisconnected = false;
  try {
    for (;;) {
      const page = await fetchPage(client, given, { after, size: PER_CALL, signal: stopping }).catch(
        (error: unknown) => {
          if (!follow || !isConnected || !isTransient(error)) throw error;
          if (!isDisconnected) process.stderr.write(`${printable((error as Error).message)} Trying again.\n`);
          isDisconnected = true;
        },
      );
      if (page) {
        isConnected = true;
        isDisconnected = false;
        if (page.items.length > 0 || (given.isOn("--json") && !follow)) await write(page, given);
        after = page.next;
        if (!process.stdout.writable) return EXIT.ok;
      }
      if (page?.items.length === PER_CALL) continue;
      if (!follow) break;
      await sleepFor(POLL_MS, undefined, { signal: stopping });
    }
  } catch (error) {
    if (!stopping.aborted) throw error;
  }
  // In the replies that --json prints it is `next`.
  if (!given.isOn("--json") || process.stderr.isTTY || stopping.aborted) {
    process.stderr.write(`Go on with --after ${printable(after ?? "")}\n`);
  }
  return stopping.aborted ? INTERRUPTED : EXIT.ok;
}

async function fetchPage(
  client: Client,
  given: Given,
  { signal, ...page }: { key?: string; after?: string | undefined; size?: number; signal?: AbortSignal },
): Promise<RecordsPage> {
  const query = { source: given.text("--source"), endpoint: given.maybeText("--endpoint"), ...page };
  const request = { method: "GET", path: `${HARVEST}/records`, query, ...(signal ? { signal } : {}) } as const;
  return recordsPage((await client.download(request, "application/json")).text);
}

/** Splits a reply without parsing the records. */
export function recordsPage(text: string): RecordsPage {
  const end = text.lastIndexOf(TAIL);
  const { next } = JSON.parse(`{${text.slice(end + 1)}`) as { next: string };
  const items = createEventSplitter("the reply").push(text.slice(HEAD.length, end));
  return { text, items: items.map((item) => item.text), next };
}

/** Resolves when the lines are written, so that a slow reader is waited for, or cannot be: its reader, such as `head`, has gone. */
async function write({ text, items }: RecordsPage, given: Given): Promise<void> {
  const lines = given.isOn("--json") ? `${text}\n` : items.map((item) => `${item}\n`).join("");
  await new Promise<void>((resolve) => {
    process.stdout.write(lines, () => resolve());
  });
}
