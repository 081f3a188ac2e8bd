import { expect, test } from "vitest";
import { signal } from "../../../test/until.ts";
import { cachedFor } from "./cached-for.ts";

/** The next answer, and how often one was made. */
function maker() {
  const made: ReturnType<typeof signal<string>>[] = [];
  let nowMs = 0;
  const get = cachedFor(
    1_000,
    () => {
      const one = signal<string>();
      made.push(one);
      return one.promise;
    },
    () => nowMs,
  );
  return { get, made, pass: (ms: number) => (nowMs += ms) };
}

test("callers that ask while an answer is being made share it, however long that takes", async () => {
  const { get, made, pass } = maker();
  const early = get();
  pass(60_000);
  const late = get();
  expect(made).toHaveLength(1);
  made[0]?.resolve("answer");
  expect(await Promise.all([early, late])).toEqual(["answer", "answer"]);
});

test("an answer is cached for its time, counted from when it was made", async () => {
  const { get, made, pass } = maker();
  const first = get();
  pass(5_000);
  made[0]?.resolve("first");
  await first;
  pass(999);
  expect(await get()).toBe("first");
  pass(1);
  const second = get();
  made[1]?.resolve("second");
  expect(await second).toBe("second");
  expect(made).toHaveLength(2);
});

test("a failure is shared by all callers, cached as long, and then dropped", async () => {
  const { get, made, pass } = maker();
  const both = [get(), get()];
  made[0]?.reject(new Error("away"));
  for (const one of both) await expect(one).rejects.toThrow("away");
  await expect(get()).rejects.toThrow("away");
  pass(1_000);
  const next = get();
  made[1]?.resolve("back");
  expect(await next).toBe("back");
});
