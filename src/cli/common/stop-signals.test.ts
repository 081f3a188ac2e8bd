/** The effects of the first and the second signal. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { stopSignals } from "./stop-signals.ts";

function listen() {
  const source = new EventEmitter();
  const exits: number[] = [];
  const immediate: string[] = [];
  let time = 0;
  const stopping = stopSignals((signal) => void immediate.push(signal), {
    source: {
      on: (signal, listener) => source.on(signal, listener),
      exit: (code) => void exits.push(code),
    },
    now: () => time,
  });
  return {
    stopping,
    exits,
    immediate,
    send(signal: "SIGINT" | "SIGTERM", laterMs = 0) {
      time += laterMs;
      source.emit(signal, signal);
    },
  };
}

test("the first signal requests a graceful stop", () => {
  const { stopping, exits, send } = listen();
  expect(stopping.aborted).toBe(false);
  send("SIGTERM");
  expect(stopping.aborted).toBe(true);
  expect(exits).toEqual([]);
});

test("a second signal exits with the code of that signal, after a message", () => {
  const { exits, immediate, send } = listen();
  send("SIGTERM");
  send("SIGINT", 2_000);
  expect(immediate).toEqual(["SIGINT"]);
  expect(exits).toEqual([130]);

  const other = listen();
  other.send("SIGINT");
  other.send("SIGTERM", 2_000);
  expect(other.exits).toEqual([143]);
});

test("one press of Ctrl-C that arrives twice, as under `npm start`, counts once", () => {
  const { exits, send } = listen();
  send("SIGINT");
  send("SIGINT", 20);
  expect(exits).toEqual([]);
});
