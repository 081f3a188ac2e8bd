/**
 * One event stream for all tabs: a browser allows six connections per server, and a seventh tab would hang. The tab that holds
 * the lock (the leader) reads the stream and broadcasts it. A hidden tab releases the lock, stops listening, and refetches
 * everything when it is shown. A tab that receives nothing, because a dialog or a debugger blocks the leader, polls until it
 * does. Locks exist in secure contexts only; without them each tab reads its own stream.
 */
export interface Change {
  kind: string;
  /** `*` is all of the kind. */
  id: string;
  rev: string;
}

export type StreamState = "live" | "polling" | "paused";

/** `rev` is the position in the stream, if it has advanced. */
type Message =
  | { changes: readonly Change[]; rev: string }
  | { gap: true; rev?: string }
  | { state: StreamState; rev?: string };
/** A tab that has just been shown asks for the state. */
type Question = { ask: true };
type OnMessage = (message: Message) => void;

export interface StreamListener {
  onChanges(changes: readonly Change[]): void;
  /** Changes may have been missed, up to this rev if it is known. */
  onGap(rev: string | undefined): void;
  /** Called even if the state did not change. */
  onState(state: StreamState): void;
}

const PATH = "/api/v1/events";
const LOCK = "millrace.stream";
/** Delays between reconnects. They end at the polling interval, since pages poll meanwhile. */
const BACK_OFF_MS = [1_000, 2_000, 5_000];
/** Heartbeats come every 15 s. */
const SILENCE_MS = 40_000;
/** A tab that reads answers at once what the state is, unless it is halted. */
const ANSWER_MS = 5_000;

/** `after` is the rev that the page has read up to. Returns a function that closes the stream. */
export function openStream(after: bigint, listener: StreamListener): () => void {
  const channel = new BroadcastChannel("millrace.stream");
  let lastRev = String(after);
  let state: StreamState = "polling";
  let release = (): void => {};
  let leads = false;
  let silence: ReturnType<typeof setTimeout> | undefined;

  function onMessage(message: Message): void {
    lastRev = message.rev ?? lastRev;
    if ("changes" in message) listener.onChanges(message.changes);
    else if ("gap" in message) listener.onGap(message.rev);
    else {
      state = message.state;
      listener.onState(state);
    }
  }
  function broadcast(message: Message): void {
    onMessage(message);
    channel.postMessage(message);
  }
  channel.addEventListener("message", ({ data }: MessageEvent<Message | Question>) => {
    if (document.hidden) return;
    if ("ask" in data) {
      if (leads) channel.postMessage({ state } satisfies Message);
      return;
    }
    awaitMessage(SILENCE_MS);
    onMessage(data);
  });
  function awaitMessage(limitMs: number): void {
    clearTimeout(silence);
    silence = setTimeout(() => {
      if (!leads) onMessage({ state: "polling" });
    }, limitMs);
  }

  function begin(): void {
    const ended = new AbortController();
    release = () => ended.abort();
    const locks = navigator.locks as LockManager | undefined;
    if (!locks) {
      void read(() => lastRev, onMessage, ended.signal);
      return;
    }
    channel.postMessage({ ask: true } satisfies Question);
    awaitMessage(ANSWER_MS);
    void locks
      .request(LOCK, { signal: ended.signal }, async () => {
        leads = true;
        clearTimeout(silence);
        await read(() => lastRev, broadcast, ended.signal);
        leads = false;
      })
      .catch(() => {}); // The tab was hidden before it had its turn.
  }
  function follow(): void {
    release();
    clearTimeout(silence);
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
    clearTimeout(silence);
    channel.close();
  };
}

/** Reads until the signal aborts, and connects again after a failure. */
async function read(lastRev: () => string, onMessage: OnMessage, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1) {
    const hasOpened = await readOnce(lastRev(), onMessage, signal);
    if (signal.aborted) return;
    onMessage({ state: "polling" });
    if (hasOpened) failures = 0;
    await pause(BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)] ?? 0, signal);
  }
}

/** Reads until the connection ends. Returns whether it was ever open. */
function readOnce(after: string, onMessage: OnMessage, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const source = new EventSource(`${PATH}?after=${after}`);
    let hasOpened = false;
    let silence = setTimeout(end, SILENCE_MS);
    function end(): void {
      clearTimeout(silence);
      signal.removeEventListener("abort", end);
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
    source.addEventListener("heartbeat", ({ lastEventId }) => {
      resetSilence();
      onMessage({ state: "live", rev: lastEventId });
    });
    source.addEventListener("gap", ({ lastEventId }) => onMessage({ gap: true, rev: lastEventId }));
    source.addEventListener("error", end); // Closed here: the browser would reconnect immediately and forever.
    signal.addEventListener("abort", end);
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    function end(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    }
    signal.addEventListener("abort", end);
  });
}
