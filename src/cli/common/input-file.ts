/** Reads the FILE argument of a command; `-` is standard input. */
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { OperatorError } from "../../kernel/errors.ts";
import { messageOf } from "../../kernel/text/message-of.ts";
import { EXIT } from "./exit-codes.ts";

export async function readInputFile(filename: string): Promise<string> {
  try {
    return filename === "-" ? await text(process.stdin) : await readFile(filename, "utf8");
  } catch (error) {
    throw new OperatorError(`${filename} cannot be read: ${messageOf(error)}.`, EXIT.usage);
  }
}
