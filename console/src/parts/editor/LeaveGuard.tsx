/** Asks before the page of an editor is left, if the browser could not keep the draft. A draft that is kept needs no question. */
import { useBlocker } from "@tanstack/react-router";
import { useWords } from "../../words/words.ts";
import { Ask } from "../dialogs/Ask.tsx";
import type { Draft } from "./draft.ts";
import { editorWords } from "./words.ts";

interface Place {
  pathname: string;
  search: object;
}

export function LeaveGuard({ draft: { isAtRisk } }: { draft: Draft }) {
  const text = useWords(editorWords);
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) => isAtRisk() && isElsewhere(current, next),
    enableBeforeUnload: isAtRisk,
    withResolver: true,
  });
  if (status !== "blocked") return null;
  return (
    <Ask title={text.leaveTitle} confirm={text.leaveAnyway} kind="danger" onConfirm={proceed} onClose={reset}>
      {text.leaveText}
    </Ask>
  );
}

/** Other parameters than the tab leave the editor where it is. */
function isElsewhere(current: Place, next: Place): boolean {
  return current.pathname !== next.pathname || tabOf(current) !== tabOf(next);
}

function tabOf({ search }: Place): unknown {
  return "tab" in search ? search.tab : undefined;
}
