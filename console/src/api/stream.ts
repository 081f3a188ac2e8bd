/**
 * The stream of hints, once for all tabs: a browser allows six connections to a server, and a seventh tab would hang. The tab
 * that holds the lock reads the stream and broadcasts it; a hidden tab releases the lock and does not listen, and reads everything
 * again when it is shown. Browsers have locks in secure contexts only; without them each tab reads the stream for itself.
 */
export interface Change {
  kind: string;
  /** `*` is all of the kind. */
  id: string;
  rev: string;
}

export type StreamState = "live" | "polling" | "paused";

type Message =
  | { changes: readonly Change[]; rev: string }
  | { gap: true; rev?: string }
  | { state: StreamState }
  | { ask: true };

export interface StreamListener {
  onChanges(changes: readonly Change[]): void;
  /** Changes may have been missed. */
  onGap(): void;
  onState(state: StreamState): void;
}

const PATH = "/api/v1/events";
const LOCK = "millrace.stream";
/** Up to the interval of polling, which goes on meanwhile: a page that reads again is live again. */
const BACK_OFF_MS = [1_000, 2_000, 5_000];
/** Heartbeats come every 15 s. */
const SILENCE_MS = 40_000;

/** `after` is the rev of what the page has read already. Returns what ends it. */
export function openStream(after: bigint, listener: StreamListener): () => void {
  const channel = new BroadcastChannel("millrace.stream");
  let lastRev = String(after);
  let state: StreamState = "polling";
  let release = (): void => {};
  let leads = false;

  function onMessage(message: Message): void {
    if ("changes" in message) {
      lastRev = message.rev;
      listener.onChanges(message.changes);
    } else if ("gap" in message) {
      lastRev = message.rev ?? lastRev;
      listener.onGap();
    } else if ("state" in message) {
      state = message.state;
      listener.onState(state);
    } else if (leads) {
      channel.postMessage({ state } satisfies Message);
    }
  }
  function broadcast(message: Message): void {
    onMessage(message);
    channel.postMessage(message);
  }
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => {
    if (!document.hidden) onMessage(data);
  });

  function begin(): void {
    const ended = new AbortController();
    release = () => ended.abort();
    const locks = navigator.locks as LockManager | undefined;
    if (!locks) {
      void read(() => lastRev, onMessage, ended.signal);
      return;
    }
    channel.postMessage({ ask: true } satisfies Message);
    void locks
      .request(LOCK, { signal: ended.signal }, async () => {
        leads = true;
        await read(() => lastRev, broadcast, ended.signal);
        leads = false;
      })
      .catch(() => {}); // The tab was hidden before it had its turn.
  }
  function follow(): void {
    release();
    if (document.hidden) onMessage({ state: "paused" });
    else {
      onMessage({ gap: true }); // It may have missed anything while it was hidden.
      begin();
    }
  }
  document.addEventListener("visibilitychange", follow);
  if (!document.hidden) begin();
  return () => {
    document.removeEventListener("visibilitychange", follow);
    release();
    channel.close();
  };
}

/** Reads until the signal aborts, and connects again after a failure. */
async function read(lastRev: () => string, onMessage: (message: Message) => void, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    const hasOpened = await readOnce(lastRev(), onMessage, signal);
    if (signal.aborted) return;
    onMessage({ state: "polling" });
    if (hasOpened) failures = 0;
    await pause(BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)] ?? 0, signal);
  }
}

/** Until the connection ends. Answers whether it was ever open. */
function readOnce(after: string, onMessage: (message: Message) => void, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const source = new EventSource(`${PATH}?after=${after}`);
    let hasOpened = false;
    let silence = setTimeout(end, SILENCE_MS);
    function end(): void {
      clearTimeout(silence);
      source.close();
      resolve(hasOpened);
    }
    function resetSilence(): void {
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE_MS);
    }
    source.addEventListener("open", () => {
      hasOpened = true;
      resetSilence();
      onMessage({ state: "live" });
    });
    source.addEventListener("changes", ({ data }) => {
      resetSilence();
      onMessage(JSON.parse(String(data)) as { changes: Change[]; rev: string });
    });
    source.addEventListener("heartbeat", resetSilence);
    source.addEventListener("gap", ({ data }) =>
      onMessage({ gap: true, rev: (JSON.parse(String(data)) as { rev: string }).rev }),
    );
    source.addEventListener("error", end); // Not left to the browser, which would connect again for ever, at once.
    signal.addEventListener("abort", end, { once: true });
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
