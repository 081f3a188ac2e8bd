/**
 * Collects log lines and progress of running nodes and writes them every FLUSH_MS in one statement each: a node that logs a
 * thousand lines a second costs two statements a second.
 */
import type { Db } from "../../kernel/data/db.ts";
import { storableText } from "../../kernel/data/storable.ts";
import { counted } from "../../kernel/text/sentences.ts";
import type { ServiceLog } from "../../kernel/work/service.ts";
import type { Progress } from "../runs/progress.ts";
import { type LogLine, type ProgressWrite, writeLines, writeProgress } from "../store/logs.ts";

export interface NodeOutput {
  line(line: Omit<LogLine, "at">): void;
  progress(progress: ProgressWrite): void;
  /** Resolves when everything so far is written, or failed to be. */
  flush(): Promise<void>;
}

const FLUSH_MS = 500;
const LINE_LENGTH_MAX = 8_192;
const NOTE_LENGTH_MAX = 500;
/** Lines that wait to be written; beyond this, lines are dropped, and the log of the node and that of the process say how many. */
const LINES_WAITING_MAX = 20_000;
const LINES_AT_ONCE = 2_000;

export function createNodeOutput(deps: { db: Db; progress: Progress; log: ServiceLog }): NodeOutput {
  const { db, log } = deps;
  let lines: LogLine[] = [];
  /** By node and fence: the last line that was dropped, and how many. */
  const dropped = new Map<string, { last: Omit<LogLine, "at">; count: number }>();
  const latest = new Map<string, ProgressWrite>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  function flushSoon(): void {
    timer ??= setTimeout(() => void flush(), FLUSH_MS).unref();
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    writing = writing.then(write);
    return writing;
  }

  async function write(): Promise<void> {
    const batch = [...lines, ...droppedLines()];
    const lost = [...dropped.values()].reduce((sum, { count }) => sum + count, 0);
    const progress = [...latest.values()];
    lines = [];
    dropped.clear();
    latest.clear();
    try {
      for (let from = 0; from < batch.length; from += LINES_AT_ONCE) {
        await writeLines(db, batch.slice(from, from + LINES_AT_ONCE));
      }
      if (progress.length > 0) {
        await writeProgress(db, progress);
        deps.progress.changed(progress.map(({ run_id }) => run_id));
      }
    } catch (error) {
      log.warn({ err: error, lines: batch.length }, "log lines of chain nodes were not written");
    }
    if (lost > 0) log.warn({ lines: lost }, "log lines of chain nodes were dropped: they came too fast");
  }

  function droppedLines(): LogLine[] {
    return [...dropped.values()].map(({ last, count }) => ({
      ...last,
      at: new Date(),
      level: "warn",
      line: `${counted(count, "line")} came too fast and ${count === 1 ? "was" : "were"} dropped here.`,
    }));
  }

  return {
    line(line) {
      if (lines.length >= LINES_WAITING_MAX) {
        const key = `${line.run_id}/${line.node_id}/${line.fence}`;
        dropped.set(key, { last: line, count: (dropped.get(key)?.count ?? 0) + 1 });
        return;
      }
      lines.push({ ...line, at: new Date(), line: storableText(line.line, LINE_LENGTH_MAX) });
      flushSoon();
    },
    progress(progress) {
      const { run_id, node_id, fence, note } = progress;
      const kept = note === null ? null : storableText(note, NOTE_LENGTH_MAX);
      latest.set(`${run_id}/${node_id}/${fence}`, { ...progress, note: kept });
      flushSoon();
    },
    async flush() {
      if (lines.length > 0 || latest.size > 0) await flush();
      else await writing;
    },
  };
}
