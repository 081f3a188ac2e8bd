import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { signal } from "../../../test/until.ts";
import { createGraphSlots } from "./graph-slots.ts";

/** Work that ends when the test says so, and who is at it. */
function workshop(max: number) {
  const slots = createGraphSlots(max);
  const busy: { name: string; end: () => void }[] = [];
  return {
    async begin(...tenants: string[]) {
      for (const name of tenants) {
        void slots.take(name, async () => {
          const ended = signal();
          const own = { name, end: ended.resolve };
          busy.push(own);
          await ended.promise;
          busy.splice(busy.indexOf(own), 1);
        });
      }
      await turn();
    },
    names: () => busy.map(({ name }) => name),
    async end(tenant: string) {
      busy.find(({ name }) => name === tenant)?.end();
      await turn();
    },
  };
}

test("a tenant has one turn at a time, and those of it that wait keep no other tenant waiting", async () => {
  const { begin, names, end } = workshop(3);
  await begin("a", "a", "a", "b");
  expect(names()).toEqual(["a", "b"]);
  await end("a");
  expect(names()).toEqual(["b", "a"]);
  await begin("c", "d");
  expect(names(), "and no more than so many in all").toEqual(["b", "a", "c"]);
  await end("b");
  expect(names()).toEqual(["a", "c", "d"]);
});

test("work that fails gives its turn back", async () => {
  const slots = createGraphSlots(1);
  await expect(slots.take("a", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await slots.take("a", async () => "done")).toBe("done");
});
