/** `millrace lineage send`: sends events from files or from standard input to the server. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import { OperatorError } from "../../kernel/errors.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { type Client, pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { table } from "../common/output.ts";
import { createProgress, type Progress } from "../common/progress.ts";
import { createDelivery, type FoundEvent, type Refused } from "./delivery.ts";
import { createEventSplitter } from "./event-splitter.ts";

interface Sent {
  received: number;
  successful: number;
  failed: number;
  /** The first failed ones. */
  failedEvents: Refused[];
}

const BATCH_EVENTS = 500;
const BATCH_LENGTH = 4 * 1_048_576;
const FAILED_MAX = 1_000;
const FAILED_SHOWN = 20;

export const send = serverCommand<Sent>({
  summary: "Send OpenLineage events from files",
  details: `A file has one event, an array of events, or JSON lines; \`-\` is standard input. The tenant is that of the key, or, for events
of Gravitino, that of the event. Refused events are listed and do not stop the others; the exit code is then 1. Sending events
again is safe: an event is applied only once.`,
  args: "FILE...",
  flags: [
    {
      usage: "--baseline <id>",
      description: "The events are the full sync of this tenant: they are applied at once, while it is SYNCING.",
    },
  ],
  examples: [
    "millrace lineage send events.jsonl",
    "millrace lineage send full-sync/*.json --baseline 7",
    "kafkacat -C -t lineage -e | millrace lineage send -",
  ],
  async execute(client, given) {
    const baseline = given.maybeText("--baseline");
    const path = baseline === undefined ? "api/v1/lineage/batch" : pathTo`api/v1/lineage/tenants/${baseline}/baseline`;
    const progress = createProgress({ isQuiet: given.isOn("--json") });
    try {
      return await sendFiles(client, { path, files: given.texts("FILE"), progress });
    } finally {
      progress.end();
    }
  },
  show({ received, successful, failed, failedEvents }) {
    if (received === 0) return "There are no events.";
    const accepted = `Accepted: ${successful} of ${counted(received, "event")}.`;
    if (failed === 0) return accepted;
    const shown = failedEvents.slice(0, FAILED_SHOWN);
    const rows = shown.map(({ file, line, reason }) => [`${file}:${line}`, reason]);
    const more = failed > shown.length ? `\n(and ${failed - shown.length} more)` : "";
    return `${table(["EVENT", "REASON"], rows)}${more}\n\n${accepted}`;
  },
  exitCode: ({ failed }) => (failed === 0 ? EXIT.ok : EXIT.failed),
});

interface Sending {
  path: string;
  files: readonly string[];
  progress: Progress;
}

async function sendFiles(client: Client, { path, files, progress }: Sending): Promise<Sent> {
  const sent: Sent = { received: 0, successful: 0, failed: 0, failedEvents: [] };
  const deliver = createDelivery(client, path, (reason) => progress.update(`${reason} Trying again.`));
  const sources = await Promise.all(files.map(open));
  const bytes = sources.reduce((total, { size }) => total + size, 0);
  try {
    for await (const { batch, readBytes } of batchesOf(sources)) {
      const refused = await deliver(batch);
      sent.received += batch.length;
      sent.failed += refused.length;
      sent.successful += batch.length - refused.length;
      sent.failedEvents.push(...refused.slice(0, FAILED_MAX - sent.failedEvents.length));
      const share = Number.isFinite(bytes) ? `${Math.floor((100 * readBytes) / Math.max(1, bytes))}%  ` : "";
      progress.update(`${share}${counted(sent.successful, "event")} accepted, ${sent.failed} refused`);
    }
  } catch (error) {
    if (!(error instanceof OperatorError) || sent.received === 0) throw error;
    const before = `Before that, ${counted(sent.successful, "event")} accepted, ${sent.failed} refused; sending them again is safe.`;
    throw new OperatorError(`${error.message}\n${before}`, error.exitCode);
  }
  return sent;
}

interface Source {
  name: string;
  /** In bytes; infinite if unknown. */
  size: number;
  read(): Readable;
}

/** Called for all files before anything is sent, so that a wrong name is found at once. */
async function open(name: string): Promise<Source> {
  if (name === "-") return { name: "standard input", size: Number.POSITIVE_INFINITY, read: () => process.stdin };
  try {
    const found = await stat(name);
    if (found.isDirectory()) throw new OperatorError(`${name} is a folder. Name files instead.`, EXIT.usage);
    // A pipe has no size.
    const size = found.isFile() ? found.size : Number.POSITIVE_INFINITY;
    return { name, size, read: () => createReadStream(name) };
  } catch (error) {
    throw unreadable(name, error);
  }
}

function unreadable(name: string, error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined ? error : new OperatorError(`${name} cannot be read (${code}).`, EXIT.usage);
}

async function* batchesOf(sources: readonly Source[]): AsyncGenerator<{ batch: FoundEvent[]; readBytes: number }> {
  let batch: FoundEvent[] = [];
  let length = 0;
  let readBytes = 0;
  for (const { name, read } of sources) {
    const splitter = createEventSplitter(name);
    for await (const chunk of chunksOf(name, read())) {
      readBytes += chunk.bytes;
      for (const { text, line } of splitter.push(chunk.text)) {
        const isFull = batch.length === BATCH_EVENTS || length + text.length > BATCH_LENGTH;
        if (isFull && batch.length > 0) {
          yield { batch, readBytes };
          batch = [];
          length = 0;
        }
        batch.push({ file: name, line, text });
        length += text.length;
      }
    }
    splitter.end();
  }
  if (batch.length > 0) yield { batch, readBytes };
}

async function* chunksOf(name: string, stream: Readable): AsyncGenerator<{ text: string; bytes: number }> {
  const decoder = new TextDecoder();
  try {
    for await (const data of stream) {
      const bytes = data as Buffer;
      yield { text: decoder.decode(bytes, { stream: true }), bytes: bytes.length };
    }
  } catch (error) {
    throw unreadable(name, error);
  }
}
