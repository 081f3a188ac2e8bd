/** Replies and events in an order that a browser seldom has. In a browser, tests show the rest. */
import { onlineManager, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { fetchFresh, followChanges, keepOfSameSubject, queryClient, streamState } from "./live.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  queryClient.clear();
});

/** The events of the server. */
class Source extends EventTarget {
  static open: Source;
  readonly close = (): void => {};
  constructor() {
    super();
    Source.open = this;
  }
  send(type: string, rev: string, data: object = {}): void {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data), lastEventId: rev }));
  }
}

describe("a page that follows the stream", () => {
  let server: { status: number; text: string; rev: string; retryAfter?: string };
  const fetched = vi.fn(async () => {
    const { status, text, rev, retryAfter } = server;
    await held;
    return new Response(text, {
      status,
      headers: { "millrace-rev": rev, ...(retryAfter !== undefined && { "retry-after": retryAfter }) },
    });
  });
  let held: Promise<void> | undefined;
  let end: () => void;

  beforeEach(() => {
    vi.useFakeTimers();
    fetched.mockClear();
    held = undefined;
    server = { status: 200, text: "1", rev: "5" };
    vi.stubGlobal("fetch", fetched);
    vi.stubGlobal("EventSource", Source);
    vi.stubGlobal("navigator", {});
    vi.stubGlobal("document", Object.assign(new EventTarget(), { hidden: false }));
    end = followChanges(5n);
    Source.open.send("open", "");
  });
  afterEach(() => end());

  function show(meta: object = {}) {
    const observer = new QueryObserver<number>(queryClient, {
      queryKey: ["/x"],
      queryFn: ({ queryKey, signal }) => fetchFresh<number>("/x", queryKey, signal),
      meta: { watches: [{ kind: "run" }], ...meta },
    });
    onTestFinished(observer.subscribe(() => {}));
    return () => observer.getCurrentResult();
  }

  test("does not keep a reply that was under way at a gap", async () => {
    let release = () => {};
    held = new Promise((resolve) => (release = resolve));
    const shown = show();
    await vi.advanceTimersByTimeAsync(1);
    Source.open.send("gap", "9");
    server = { status: 200, text: "2", rev: "9" };
    release();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(shown().data).toBe(2);
  });

  test("waits no longer than its pace when the clock is set back", async () => {
    const shown = show({ atMostEveryMs: 2_000 });
    await vi.advanceTimersByTimeAsync(1);
    expect(shown().data).toBe(1);
    vi.setSystemTime(Date.now() - 3_600_000);
    server = { status: 200, text: "2", rev: "9" };
    Source.open.send("changes", "9", { rev: "9", changes: [{ kind: "run", id: "a", rev: "9" }] });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(shown().data).toBe(2);
  });

  test("asks again for what an overloaded server has refused, and not for what is wrong", async () => {
    server = { status: 503, text: "{}", rev: "5" };
    const shown = show({ watches: [] });
    await vi.advanceTimersByTimeAsync(8_000);
    expect(shown().error).not.toBeNull();
    server = { status: 404, text: "{}", rev: "5" };
    await vi.advanceTimersByTimeAsync(6_000);
    const { length } = fetched.mock.calls;
    await vi.advanceTimersByTimeAsync(20_000);
    expect(shown().error).toMatchObject({ status: 404 });
    expect(fetched).toHaveBeenCalledTimes(length);
  });

  test.each(["3600", "9999999999"])(
    "asks again within a minute of an error that says to wait %s seconds",
    async (retryAfter) => {
      server = { status: 503, text: "{}", rev: "5", retryAfter };
      const shown = show();
      await vi.advanceTimersByTimeAsync(30_000);
      expect(fetched).toHaveBeenCalledTimes(1);
      server = { status: 200, text: "2", rev: "5" };
      await vi.advanceTimersByTimeAsync(35_000);
      expect(shown().data).toBe(2);
    },
  );

  test("asks again after an error when the clock is set back", async () => {
    server = { status: 503, text: "{}", rev: "5" };
    const shown = show({ watches: [] });
    await vi.advanceTimersByTimeAsync(8_000);
    expect(shown().error).not.toBeNull();
    vi.setSystemTime(Date.now() - 3_600_000);
    server = { status: 200, text: "2", rev: "5" };
    await vi.advanceTimersByTimeAsync(6_000);
    expect(shown().data).toBe(2);
  });

  test("reads from its own machine without a network", async () => {
    onlineManager.setOnline(false);
    onTestFinished(() => onlineManager.setOnline(true));
    const shown = show();
    await vi.advanceTimersByTimeAsync(1);
    expect(shown().data).toBe(1);
  });
});

test("a reply that stays older than what is known is shown after 30 s, and polled until there is a present one", async () => {
  vi.useFakeTimers();
  let rev = 5;
  const fetched = vi.fn(() => Promise.resolve(new Response(`${rev}`, { headers: { "millrace-rev": `${rev}` } })));
  vi.stubGlobal("fetch", fetched);
  const states = vi.fn();
  streamState.subscribe(states);
  const query = new QueryObserver<number>(queryClient, {
    queryKey: ["/x"],
    queryFn: ({ queryKey, signal }) => fetchFresh<number>("/x", queryKey, signal),
    meta: { watches: [{ kind: "run" }] },
  });
  const end = query.subscribe(() => {});
  await vi.waitFor(() => expect(query.getCurrentResult().data).toBe(5));
  rev = 3;
  const older = query.refetch();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(query.getCurrentResult().data).toBe(5);
  expect(states).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(20_000);
  expect((await older).data).toBe(3);
  expect(states).toHaveBeenCalledTimes(1);
  const before = fetched.mock.calls.length;
  await query.refetch();
  expect(fetched).toHaveBeenCalledTimes(before + 1);
  expect(states).toHaveBeenCalledTimes(1);
  rev = 6;
  expect((await query.refetch()).data).toBe(6);
  expect(states).toHaveBeenCalledTimes(2);
  end();
});

test("while data are fetched, those of another filter are shown, and those of another entity are not", () => {
  const keep = keepOfSameSubject("/api/v1/runs/2/nodes?state=FAILED");
  expect(keep("earlier", { queryKey: ["/api/v1/runs/2/nodes"] })).toBe("earlier");
  expect(keep("earlier", { queryKey: ["/api/v1/runs/1/nodes"] })).toBeUndefined();
  expect(keep(undefined, undefined)).toBeUndefined();
  const ofTenant = keepOfSameSubject("/api/v1/lineage/assets?q=b&tenant=1");
  expect(ofTenant("earlier", { queryKey: ["/api/v1/lineage/assets?tenant=1&q=a"] })).toBe("earlier");
  expect(ofTenant("earlier", { queryKey: ["/api/v1/lineage/assets?q=b&tenant=2"] })).toBeUndefined();
});
