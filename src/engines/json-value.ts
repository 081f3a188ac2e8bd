/** Reads a JSON column. Its text may be larger, or deeper, than a process can parse without stopping. */
import { parseWithin } from "../kernel/json/complexity.ts";
import { messageOf } from "../kernel/text/message-of.ts";
import { EngineRefusal } from "./engine.ts";

export function jsonValue(text: string): unknown {
  try {
    return parseWithin(text);
  } catch (error) {
    throw new EngineRefusal(`A JSON value of the result cannot be used. ${messageOf(error)}.`, { cause: error });
  }
}
