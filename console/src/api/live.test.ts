/** Replies of a process that hears of no changes. In a browser, tests show the rest. */
import { QueryObserver } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";
import { fetchFresh, keepOfSamePath, queryClient, streamState } from "./live.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
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
  const keep = keepOfSamePath("/api/v1/runs/2/nodes?state=FAILED");
  expect(keep("earlier", { queryKey: ["/api/v1/runs/2/nodes"] })).toBe("earlier");
  expect(keep("earlier", { queryKey: ["/api/v1/runs/1/nodes"] })).toBeUndefined();
  expect(keep(undefined, undefined)).toBeUndefined();
});
