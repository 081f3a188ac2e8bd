import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createTurns } from "./turns.ts";

interface Item {
  task: string;
  n: number;
}

/** Serves everything, one by one or in batches; returns the order. */
function serveAll(turns: ReturnType<typeof createTurns<Item>>, batch: number): Item[] {
  const order: Item[] = [];
  for (let items = turns.peek(batch); items.length > 0; items = turns.peek(batch)) {
    for (const item of items) turns.serve(item);
    order.push(...items);
  }
  return order;
}

function add(turns: ReturnType<typeof createTurns<Item>>, task: string, count: number): void {
  for (let n = 1; n <= count; n += 1) turns.add({ task, n });
}

/** `3a 2b`: how many of a task in a row. */
function inRows(order: readonly Item[]): string {
  const rows: { task: string; count: number }[] = [];
  for (const { task } of order) {
    const last = rows.at(-1);
    if (last?.task === task) last.count += 1;
    else rows.push({ task, count: 1 });
  }
  return rows.map(({ task, count }) => `${count}${task}`).join(" ");
}

test.each([1, 3, 10, 50])("tasks take turns of a quantum, served %i at a time", (batch) => {
  const turns = createTurns<Item>(10);
  add(turns, "a", 25);
  add(turns, "b", 3);
  add(turns, "c", 12);
  expect(inRows(serveAll(turns, batch))).toBe("10a 3b 10c 10a 2c 5a");
});

test("a task that comes later does not wait for more than the rest of a turn", () => {
  const turns = createTurns<Item>(10);
  add(turns, "a", 100);
  for (const item of turns.peek(4)) turns.serve(item);
  add(turns, "b", 1);
  expect(inRows(serveAll(turns, 1)).split(" ").slice(0, 2)).toEqual(["6a", "1b"]);
});

test("an item that is put back is the next", () => {
  const turns = createTurns<Item>(10);
  add(turns, "a", 1);
  add(turns, "b", 1);
  const [first] = turns.peek(1);
  turns.serve(first as Item);
  turns.putBack(first as Item);
  expect(turns.peek(1)).toEqual([first]);
});

test("peeking removes nothing, and shows the order of serving", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 60 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 70 }),
      (tasks, quantum, count) => {
        const turns = createTurns<Item>(quantum);
        for (const [n, task] of tasks.entries()) turns.add({ task, n });
        const expected = turns.peek(count);
        expect(turns.peek(count)).toEqual(expected);
        expect(expected).toHaveLength(Math.min(count, tasks.length));
        const served: Item[] = [];
        for (const _ of expected) {
          const [item] = turns.peek(1);
          turns.serve(item as Item);
          served.push(item as Item);
        }
        expect(served).toEqual(expected);
        expect(turns.all()).toHaveLength(tasks.length - served.length);
      },
    ),
  );
});

test("an item that is dropped is not served", () => {
  const turns = createTurns<Item>(10);
  add(turns, "a", 3);
  const [, second] = turns.peek(3);
  turns.drop(second as Item);
  expect(serveAll(turns, 10).map(({ n }) => n)).toEqual([1, 3]);
});
