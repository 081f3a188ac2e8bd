/**
 * Checks a file of JSON lines before it is loaded, and fails at the first bad line. An example of a long-running node: it
 * reports progress, stops when the run is stopped, and resumes where the last attempt ended.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";

const CHUNK_BYTES = 1024 * 1024;

export default {
  type: "check-jsonl",
  summary: "Checks that each line of a file is a JSON object with the required fields.",

  cfg: {
    type: "object",
    properties: {
      file: { type: "string", minLength: 1 },
      required: { type: "array", items: { type: "string" }, default: [] },
    },
    required: ["file"],
  },

  async execute(ctx, { file, required }) {
    const { size } = await stat(file);
    let { offset, lines } = ctx.checkpoint ?? { offset: 0, lines: 0 };
    if (offset > 0) ctx.log(`resuming after line ${lines}`);
    let rest = Buffer.alloc(0);
    const chunks = createReadStream(file, { start: offset, highWaterMark: CHUNK_BYTES, signal: ctx.signal });
    for await (const chunk of chunks) {
      const read = Buffer.concat([rest, chunk]);
      // A checkpoint is always between two lines.
      const end = read.lastIndexOf("\n") + 1;
      for (const line of read.toString("utf8", 0, end).split("\n").slice(0, -1)) checkLine(line, ++lines, required);
      rest = read.subarray(end);
      offset += end;
      ctx.progress(offset / size, `${lines} lines`);
      await ctx.saveCheckpoint({ offset, lines });
    }
    if (rest.length > 0) checkLine(rest.toString("utf8"), ++lines, required);
    return { artifact: { lines } };
  },
};

function checkLine(text, number, required) {
  let row;
  try {
    row = JSON.parse(text);
  } catch {
    throw bad(number, "is not JSON");
  }
  if (typeof row !== "object" || row === null) throw bad(number, "is not an object");
  const missing = required.filter((field) => !Object.hasOwn(row, field));
  if (missing.length > 0) throw bad(number, `lacks ${missing.join(", ")}`);
}

/** A retry would find the same line, so there is none. After a fix of the file, a manual retry resumes from the checkpoint. */
function bad(number, what) {
  return Object.assign(new Error(`Line ${number} ${what}.`), { retry: false });
}
