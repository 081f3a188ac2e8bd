/**
 * Streams of hints, as server-sent events. Each caller gets the kinds that its scopes allow, and a key with a tenant those of
 * its tenant. A stream continues after the batch that `Last-Event-ID` names, or begins with `gap` if that one is not known
 * here any more, or too much has come since. Every 15 s it sends a heartbeat with the newest rev, which keeps proxies from closing it and lets
 * a caller whose own kinds seldom change continue from a rev that is still known.
 */
import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyReply } from "fastify";
import { type Caller, type ScopeTable, whyNot } from "../auth/scopes.ts";
import { kernelError } from "../errors.ts";
import type { ReceivedHints } from "./hints.ts";
import type { HintTable } from "./kinds.ts";
import { ALL } from "./outgoing.ts";
import type { Batch } from "./ring.ts";

export interface HintStreams {
  /** Sends hints until the caller disconnects or may no longer see them. Resolves when the connection is closed. */
  send(reply: FastifyReply, options: StreamOptions): Promise<void>;
  /** Ends all streams, so that a stopping server does not wait for them. */
  stop(): void;
}

export interface StreamOptions {
  caller: Caller;
  /** What the limit counts for: a key, or an address. */
  identity: string;
  /** The same for people. */
  who: string;
  /** The rev of the last batch that the caller has seen. */
  after: bigint | undefined;
  accessEnds: AbortSignal;
}

export interface HintStreamsDeps {
  received: ReceivedHints;
  kinds: HintTable;
  scopes: ScopeTable;
  limits?: Partial<typeof LIMITS>;
}

/** What a caller may see. */
interface View {
  kinds: ReadonlySet<string>;
  tenantId: string | null;
  /** Equal for equal views. */
  key: string;
}

const LIMITS = {
  streams: 500,
  streamsOfCaller: 20,
  /** What a caller may leave unread before its connection is closed. A stream begins with at most half of it. */
  unreadBytes: 1_000_000,
};
/** For a caller that reads slowly to receive the end of its stream. */
const END_MS = 1_000;
const KEEP_ALIVE_MS = 15_000;
/** How long a browser waits before it connects again. */
const RECONNECT_MS = 2_000;
const RETRY_AFTER_SECONDS = 5;

export function createHintStreams(deps: HintStreamsDeps): HintStreams {
  const { received, kinds, scopes } = deps;
  const limits = { ...LIMITS, ...deps.limits };
  const open = new Set<() => void>();
  const openOf = new Map<string, number>();
  let written: { batch: Batch | undefined; texts: Map<string, string> } = { batch: undefined, texts: new Map() };
  let stopped = false;

  function viewOf(caller: Caller): View {
    const seen = Object.keys(kinds).filter((kind) => whyNot(caller, kinds[kind]?.scope ?? "", scopes) === undefined);
    return { kinds: new Set(seen), tenantId: caller.tenantId, key: `${caller.tenantId ?? ""} ${seen.join(" ")}` };
  }

  /** The event with the changes that a view includes, or "" for none. Streams with equal views share the text. */
  function eventFor(view: View, batch: Batch): string {
    if (written.batch !== batch) written = { batch, texts: new Map() };
    const text = written.texts.get(view.key) ?? textFor(view, batch);
    written.texts.set(view.key, text);
    return text;
  }

  function admit({ identity, who }: StreamOptions): void {
    if (stopped) throw kernelError("SHUTTING_DOWN", { seconds: RETRY_AFTER_SECONDS });
    if ((openOf.get(identity) ?? 0) >= limits.streamsOfCaller) {
      throw kernelError("TOO_MANY_STREAMS", { limit: limits.streamsOfCaller }, { who });
    }
    if (open.size >= limits.streams) {
      throw kernelError("OVERLOADED", { waiting: open.size, seconds: RETRY_AFTER_SECONDS });
    }
  }

  function count(identity: string, change: 1 | -1): void {
    const streams = (openOf.get(identity) ?? 0) + change;
    if (streams === 0) openOf.delete(identity);
    else openOf.set(identity, streams);
  }

  return {
    async send(reply, options) {
      admit(options);
      const { caller, identity, after, accessEnds } = options;
      const view = viewOf(caller);
      reply.hijack();
      const { raw } = reply;
      if (raw.destroyed) return;
      raw.writeHead(200, {
        ...(reply.getHeaders() as OutgoingHttpHeaders),
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
        connection: "close", // Nothing follows on it, and a stopping server would wait for a kept-alive connection.
      });

      const write = (text: string): void => {
        if (text === "" || raw.writableEnded || raw.destroyed) return;
        raw.write(text);
        if (raw.writableLength > limits.unreadBytes) raw.destroy(); // The caller connects again, and continues or has a gap.
      };
      const gap = (rev: bigint): void => write(event("gap", { rev: String(rev) }, rev));
      const end = (): void => {
        raw.end();
        setTimeout(() => raw.destroy(), END_MS).unref();
      };
      const endAccess = (): void => {
        write(
          event("error", { error: "The key was revoked, or the session or token has ended.", code: "UNAUTHENTICATED" }),
        );
        end();
      };

      const missed = after === undefined ? undefined : received.after(after)?.map((batch) => eventFor(view, batch));
      const length = missed?.reduce((sum, text) => sum + text.length, 0) ?? 0;
      write(`retry: ${RECONNECT_MS}\n\n`);
      if (missed && length < limits.unreadBytes / 2) write(missed.join(""));
      else gap(received.rev());
      const unlisten = received.on({ onBatch: (batch) => write(eventFor(view, batch)), onGap: gap });
      // An event, not a comment, so that a page notices when they stop.
      const keepAlive = setInterval(() => write(event("heartbeat", {}, received.rev())), KEEP_ALIVE_MS);
      open.add(end);
      count(identity, 1);
      accessEnds.addEventListener("abort", endAccess);
      await new Promise((resolve) => raw.once("close", resolve));
      accessEnds.removeEventListener("abort", endAccess);
      count(identity, -1);
      open.delete(end);
      clearInterval(keepAlive);
      unlisten();
    },
    stop() {
      stopped = true;
      for (const end of open) end();
    },
  };
}

function textFor(view: View, { rev, changes }: Batch): string {
  const seen = changes.filter(
    ({ kind, tenantId }) =>
      view.kinds.has(kind) && (view.tenantId === null || tenantId === view.tenantId || tenantId === ALL),
  );
  if (seen.length === 0) return "";
  const shown = { rev: String(rev), changes: seen.map(({ kind, id }) => ({ kind, id, rev: String(rev) })) };
  return event("changes", shown, rev);
}

function event(name: string, data: object, rev?: bigint): string {
  return `event: ${name}\n${rev === undefined ? "" : `id: ${rev}\n`}data: ${JSON.stringify(data)}\n\n`;
}
