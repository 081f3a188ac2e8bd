/** A queue in which tasks take turns: at most a quantum of items in a row for one task while others wait. */

export interface Turns<Item extends { readonly task: string }> {
  add(item: Item): void;
  /** First of its task, and its task first. */
  putBack(item: Item): void;
  /** The next items in order, at most `count`, without removing them. */
  peek(count: number): Item[];
  /** Removes an item whose turn it was. */
  serve(item: Item): void;
  /** Removes an item that does not wait any more. */
  drop(item: Item): void;
  all(): Item[];
}

export function createTurns<Item extends { readonly task: string }>(quantum: number): Turns<Item> {
  /** By task; the first has the turn. */
  let queues = new Map<string, Item[]>();
  let left = quantum;

  function drop(item: Item): void {
    const queue = queues.get(item.task) ?? [];
    const index = queue.indexOf(item);
    if (index >= 0) queue.splice(index, 1);
    if (queue.length > 0) return;
    if (isFirst(item.task)) left = quantum;
    queues.delete(item.task);
  }

  const isFirst = (task: string) => queues.keys().next().value === task;

  return {
    add(item) {
      const queue = queues.get(item.task);
      if (queue) queue.push(item);
      else queues.set(item.task, [item]);
    },
    putBack(item) {
      const queue = queues.get(item.task);
      if (queue) queue.unshift(item);
      else queues = new Map([[item.task, [item]], ...queues]);
    },
    peek(count) {
      const items: Item[] = [];
      let round = [...queues.values()].map((queue, index) => ({ queue, from: 0, may: index === 0 ? left : quantum }));
      while (items.length < count && round.length > 0) {
        for (const turn of round) {
          items.push(...turn.queue.slice(turn.from, turn.from + turn.may));
          turn.from += turn.may;
          turn.may = quantum;
        }
        round = round.filter(({ queue, from }) => from < queue.length);
      }
      return items.slice(0, count);
    },
    serve(item) {
      if (!isFirst(item.task)) {
        const queue = queues.get(item.task) ?? [];
        queues.delete(item.task);
        queues = new Map([[item.task, queue], ...queues]);
        left = quantum;
      }
      left -= 1;
      const turnIsOver = left <= 0;
      drop(item);
      const rest = queues.get(item.task);
      if (!turnIsOver || !rest) return;
      queues.delete(item.task);
      queues.set(item.task, rest);
      left = quantum;
    },
    drop,
    all: () => [...queues.values()].flat(),
  };
}
