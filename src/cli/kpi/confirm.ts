/** Asks for confirmation on a terminal. */
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Anything but yes is a no, including Ctrl-C and Ctrl-D, which close the input. */
export async function isConfirmed(
  question: string,
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
): Promise<boolean> {
  // Not `readline/promises`, whose `question` throws on Ctrl-C.
  const lines = createInterface({ input, output, prompt: `${question} [y/N] ` });
  lines.prompt();
  const [answer = ""] = (await Promise.race([once(lines, "line"), once(lines, "close")])) as [string?];
  lines.close();
  return /^y(es)?$/i.test(answer.trim());
}
