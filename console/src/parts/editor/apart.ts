/** Large texts are read and written in a worker, so that the page goes on meanwhile. */
import { type Parsed, type ReadText, withPlaces } from "./text.ts";
import type { TextWork } from "./text.worker.ts";

/** The page and its editor read the same text. */
let last: { text: string; read: Promise<ReadText> } | undefined;

export function readApart(text: string): Promise<ReadText> {
  if (last?.text !== text) {
    const read = apart<Parsed>({ read: text }).then((parsed) => withPlaces(text, parsed));
    last = { text, read };
  }
  return last.read;
}

export function writeApart(value: unknown): Promise<string> {
  return apart<string>({ write: value });
}

function apart<Answer>(work: TextWork): Promise<Answer> {
  const worker = new Worker(new URL("./text.worker.ts", import.meta.url), { type: "module" });
  const answer = new Promise<Answer>((resolve, reject) => {
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => resolve(data));
    worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    worker.postMessage(work);
  });
  return answer.finally(() => worker.terminate());
}
