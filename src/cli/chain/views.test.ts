/** The live view of a run: changes, passing time, and resizing of the window. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { RunNode } from "./api.ts";
import { at, BEGIN, nodeOf, runOf } from "./frame.fixture.ts";
import { testTerminal } from "./terminal.fixture.ts";
import { drawnView, type WatchedRun } from "./views.ts";

beforeEach(() => void vi.useFakeTimers({ now: BEGIN }));
afterEach(() => void vi.useRealTimers());

function watched(...nodes: RunNode[]): WatchedRun {
  return { run: runOf(), nodes: new Map(nodes.map((node) => [node.nodeId, node])) };
}

function setUp(columns = 60, rows = 10) {
  const terminal = testTerminal(columns, rows);
  return { terminal, view: drawnView(terminal), tree: () => terminal.lines().slice(2) };
}

test("concurrent changes are one frame", () => {
  const { view, terminal, tree } = setUp();
  const write = vi.spyOn(terminal, "write");
  for (let count = 0; count < 100; count += 1) view.onChange?.(watched(nodeOf(`n${count}`)), []);
  vi.advanceTimersByTime(100);
  expect(write).toHaveBeenCalledTimes(1);
  expect(tree()).toEqual(["○ n99"]);
  view.close?.();
});

test("durations are updated while nothing else changes", () => {
  const { view, tree } = setUp();
  view.onChange?.(watched(nodeOf("a", [], "RUNNING")), []);
  vi.advanceTimersByTime(2_000);
  expect(tree()).toEqual(["● a     2.0s"]);
  vi.advanceTimersByTime(1_000);
  expect(tree()).toEqual(["● a     3.0s"]);
  view.close?.();
});

test("no duration decreases when the event of an end arrives late", () => {
  const { view, terminal, tree } = setUp();
  view.onChange?.(watched(nodeOf("a", [], "RUNNING"), nodeOf("b", [], "RUNNING")), []);
  vi.advanceTimersByTime(2_000);
  const ended = [nodeOf("a", [], "SUCCESS", { endedAt: at(1.8) }), nodeOf("b", [], "SUCCESS", { endedAt: at(2.1) })];
  vi.advanceTimersByTime(300);
  view.onChange?.({ ...watched(...ended), run: runOf({ status: "SUCCESS", endedAt: at(1.9) }) }, []);
  vi.advanceTimersByTime(100);
  expect(terminal.lines()[0]).toBe("daily  SUCCESS  2.0s  run run-1");
  expect(tree()).toEqual(["✓ a     2.0s", "✓ b     2.1s"]);
  view.close?.();
});

test("the duration of an attempt does not depend on the previous one", () => {
  const { view, tree } = setUp();
  view.onChange?.(watched(nodeOf("a", [], "RUNNING")), []);
  vi.advanceTimersByTime(5_000);
  view.onChange?.(watched(nodeOf("a", [], "SUCCESS", { attempt: 2, startedAt: at(4), endedAt: at(4.5) })), []);
  view.close?.();
  expect(tree()).toEqual(["✓ a    500ms"]);
});

test("the frame always fits the window, also after it shrinks", () => {
  const { view, terminal } = setUp(60, 10);
  view.onChange?.(watched(...Array.from({ length: 50 }, (_, index) => nodeOf(`node-with-a-long-name-${index}`))), []);
  vi.advanceTimersByTime(100);
  expect(terminal.lines()).toHaveLength(9);
  expect(terminal.lines().at(-1)).toBe("… 44 more: 44 pending");
  terminal.resize(30, 6);
  expect(terminal.lines().at(-5)).toMatch(/^daily/);
  expect(terminal.lines().slice(-2)).toEqual(["○ node-with-a-long-…", "… 48 more: 48 pending"]);
  view.close?.();
});

test("a lost connection is shown below the frame until it is re-established", () => {
  const { view, terminal, tree } = setUp();
  view.onChange?.(watched(nodeOf("a")), []);
  view.onDisconnect("The server\u001b[2J is away.");
  expect(tree()).toEqual(["○ a", "The server\\u001b[2J is away. Trying again."]);
  view.onReconnect?.();
  expect(tree()).toEqual(["○ a"]);
  view.close?.();
  expect(terminal.isCursorHidden()).toBe(false);
});

test("after the end, the last frame is up to date and no timer remains", () => {
  const { view, terminal, tree } = setUp();
  view.onChange?.(watched(nodeOf("a")), []);
  vi.advanceTimersByTime(100);
  view.onChange?.(watched(nodeOf("a", [], "SUCCESS")), []);
  view.close?.();
  expect(tree()).toEqual(["✓ a     1.0s"]);
  expect(vi.getTimerCount()).toBe(0);
  const write = vi.spyOn(terminal, "write");
  terminal.resize(50, 5);
  expect(write).not.toHaveBeenCalled();
});
