/** Why a node does not run, in the language of the page. */
import type { RunNode } from "./api.ts";
import type { chainWords } from "./words.ts";

type Text = (typeof chainWords)["en"];

/** For `waits for …`; `time` writes a time. */
export function waitsText(
  { waits, dueAt, childRunId }: Pick<RunNode, "waits" | "dueAt" | "childRunId">,
  text: Text,
  time: (at: string) => string,
): string | undefined {
  if (waits === null) return undefined;
  const { cause, parents, tables, pool, unservedRole } = waits;
  const withRole = (what: string) => (unservedRole === null ? what : text.and(what, text.waitsRole(unservedRole)));
  switch (cause) {
    case "inputs": {
      const [first, second] = [
        ...(parents > 0 ? [text.waitsParents(parents)] : []),
        ...(tables.length > 0 ? [text.waitsTables(tables.length, tables.join(", "))] : []),
      ];
      return first === undefined || second === undefined ? first : text.and(first, second);
    }
    case "slot": {
      const worker = unservedRole === null ? text.waitsWorker : text.waitsRole(unservedRole);
      return pool === null ? worker : text.and(text.waitsPool(pool), worker);
    }
    case "retry":
      return withRole(text.waitsRetry(dueAt === null ? "" : time(dueAt)));
    case "stop":
      return text.waitsStop(childRunId ?? "");
    case "started":
      return childRunId === null ? text.waitsStarted : text.waitsRun(childRunId);
    case "lost":
      return withRole(text.waitsLost);
  }
}
