/** What an action would do, in numbers, with its confirmation. The graph and the table show the same node by node. */
import { useEffect, useRef } from "react";
import { Button } from "../../parts/controls/Button.tsx";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import type { NodeStatus } from "../api.ts";
import styles from "../chains.module.css";
import { chainWords } from "../words.ts";
import type { Previews } from "./preview.ts";

export function PreviewBar({ previews, all }: { previews: Previews; all: number }) {
  const text = useWords(chainWords);
  const shared = useWords(common);
  const { preview, isBusy, confirm, cancel } = previews;
  const bar = useRef<HTMLElement>(null);
  const isShown = preview !== undefined;
  // The next key of a person without a mouse is Tab: to its buttons.
  useEffect(() => {
    if (!isShown) return undefined;
    const before = document.activeElement;
    bar.current?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, [isShown]);
  if (!preview) return null;
  const countsOf: Readonly<Record<NodeStatus, (n: number) => string>> = {
    RETRYING: text.countRun,
    RUNNING: text.countRun,
    PENDING: text.countReset,
    STOPPED: text.countStop,
    SUCCESS: text.countSucceed,
    SKIPPED: text.countSkip,
    FAILED: text.countStay,
  };
  const counts = new Map([[text.countStay, all - preview.moves.size]]);
  for (const to of preview.moves.values()) counts.set(countsOf[to], (counts.get(countsOf[to]) ?? 0) + 1);
  return (
    <section
      ref={bar}
      tabIndex={-1}
      className={styles.preview}
      aria-label={text.effect}
      aria-live="polite"
      onKeyDown={({ key }) => {
        if (key === "Escape") cancel();
      }}
    >
      <strong>{text.previewOf(text[preview.action], preview.nodeId ?? text.wholeRun)}</strong>
      {[...counts]
        .filter(([, count]) => count > 0)
        .map(([textOf, count]) => (
          <span key={textOf(count)}>{textOf(count)}</span>
        ))}
      {preview.hasChanged && <span role="alert">{text.changed}</span>}
      <div>
        <Button onPress={cancel}>{shared.cancel}</Button>
        <Button
          kind={preview.action === "stop" ? "danger" : "primary"}
          isPending={isBusy}
          onPress={() => void confirm()}
        >
          {shared.confirm}
        </Button>
      </div>
    </section>
  );
}

/** What becomes of a node, in a word. */
export function useEffectWords(): (to: NodeStatus) => string {
  const text = useWords(chainWords);
  const names: Readonly<Record<NodeStatus, string>> = {
    RETRYING: text.willRun,
    RUNNING: text.willRun,
    PENDING: text.willReset,
    STOPPED: text.willStop,
    SUCCESS: text.willSucceed,
    SKIPPED: text.willSkip,
    FAILED: text.stays,
  };
  return (to) => names[to];
}
