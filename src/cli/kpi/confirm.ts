/** Asks a person at a terminal for a yes. */
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Anything else than a yes is a no, and so are Ctrl-C and Ctrl-D, which close the input. */
export async function isConfirmed(
  question: string,
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
): Promise<boolean> {
  // Not `readline/promises`, whose question fails on Ctrl-C.
  const lines = createInterface({ input, output, prompt: `${question} [y/N] ` });
  lines.prompt();
  const [answer = ""] = (await Promise.race([once(lines, "line"), once(lines, "close")])) as [string?];
  lines.close();
  return /^y(es)?$/i.test(answer.trim());
}
