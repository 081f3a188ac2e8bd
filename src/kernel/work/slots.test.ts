import { expect, test } from "vitest";
import { createSlots } from "./slots.ts";

const never = new AbortController().signal;

test("callers beyond the limit wait in order, and a later one does not overtake them", async () => {
  const slots = createSlots(1);
  const entered: string[] = [];
  const enter = (name: string) => slots.take(never).then((giveBack) => (entered.push(name), giveBack));
  const first = await enter("first");
  const second = enter("second");
  const third = enter("third");
  first();
  const fourth = enter("fourth");
  (await second)();
  (await third)();
  (await fourth)();
  expect(entered).toEqual(["first", "second", "third", "fourth"]);
  (await enter("fifth"))();
});

test("an aborted one stops waiting, and its slot is not lost", async () => {
  const slots = createSlots(1);
  const giveBack = await slots.take(never);
  const abort = new AbortController();
  const impatient = slots.take(abort.signal);
  const patient = slots.take(never);
  abort.abort(new Error("no time"));
  await expect(impatient).rejects.toThrow("no time");
  giveBack();
  (await patient)();
  await expect(slots.take(abort.signal)).rejects.toThrow("no time");
  (await slots.take(never))();
});
