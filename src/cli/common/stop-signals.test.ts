/** What one and two signals to stop do. */
import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { stopSignals } from "./stop-signals.ts";

function listen() {
  const source = new EventEmitter();
  const exits: number[] = [];
  const told: string[] = [];
  let time = 0;
  const stopping = stopSignals((signal) => void told.push(signal), {
    source: {
      on: (signal, listener) => source.on(signal, listener),
      exit: (code) => void exits.push(code),
    },
    now: () => time,
  });
  return {
    stopping,
    exits,
    told,
    send(signal: "SIGINT" | "SIGTERM", laterMs = 0) {
      time += laterMs;
      source.emit(signal, signal);
    },
  };
}

test("the first signal asks for a graceful end", () => {
  const { stopping, exits, send } = listen();
  expect(stopping.aborted).toBe(false);
  send("SIGTERM");
  expect(stopping.aborted).toBe(true);
  expect(exits).toEqual([]);
});

test("a second signal ends the process with the code of that signal, after saying so", () => {
  const { exits, told, send } = listen();
  send("SIGTERM");
  send("SIGINT", 2_000);
  expect(told).toEqual(["SIGINT"]);
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
