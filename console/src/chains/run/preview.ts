/** An action on a run or node: a preview first, then exactly what was previewed, or a new preview if the run changed. */
import { useState } from "react";
import { ApiError, act, withQuery } from "../../api/client.ts";
import { refresh } from "../../api/live.ts";
import { toast, toastError } from "../../parts/actions/toasts.tsx";
import { useWords } from "../../words/words.ts";
import { type Effect, type NodeStatus, paths } from "../api.ts";
import { chainWords } from "../words.ts";

export type Action = "stop" | "resume" | "retry" | "complete";
export interface Preview {
  action: Action;
  /** Undefined means the whole run. */
  nodeId: string | undefined;
  moves: ReadonlyMap<string, NodeStatus>;
  revision: string;
  hasChanged: boolean;
}

export interface Previews {
  preview: Preview | undefined;
  isBusy: boolean;
  ask(action: Action, nodeId?: string): Promise<void>;
  confirm(): Promise<void>;
  cancel(): void;
}

export function usePreviews(runId: string, onDone: (preview: Preview) => void): Previews {
  const text = useWords(chainWords);
  const [preview, setPreview] = useState<Preview>();
  const [isBusy, setBusy] = useState(false);
  const pathOf = (action: Action, nodeId: string | undefined) =>
    nodeId === undefined ? paths.runAction(runId, action) : paths.nodeAction(runId, nodeId, action);

  async function load(action: Action, nodeId: string | undefined, hasChanged: boolean): Promise<void> {
    const { nodes, revision } = await act<Effect>(withQuery(pathOf(action, nodeId), { dryRun: true }), "POST");
    setPreview({ action, nodeId, moves: new Map(nodes.map((move) => [move.nodeId, move.to])), revision, hasChanged });
  }
  async function busy(work: () => Promise<void>): Promise<void> {
    setBusy(true);
    await work().catch(toastError);
    setBusy(false);
  }
  return {
    preview,
    isBusy,
    ask: (action, nodeId) => busy(() => load(action, nodeId, false)),
    confirm: () =>
      busy(async () => {
        if (!preview) return;
        const { action, nodeId, revision } = preview;
        try {
          // A stop applies to whatever is running then; otherwise a run that keeps changing could never be stopped.
          const query = action === "stop" ? {} : { revision };
          await act(withQuery(pathOf(action, nodeId), query), "POST");
        } catch (error) {
          if (!(error instanceof ApiError) || error.code !== "RUN_CHANGED") throw error;
          await load(action, nodeId, true);
          return;
        }
        setPreview(undefined);
        toast(text.done(text[action]));
        onDone(preview);
        await refresh({ kind: "run", id: runId });
      }),
    cancel: () => setPreview(undefined),
  };
}
