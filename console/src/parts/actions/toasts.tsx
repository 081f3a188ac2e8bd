/** Short messages about what has happened, in a region that screen readers announce. */
import { useSyncExternalStore } from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import styles from "./toasts.module.css";

interface Toast {
  id: number;
  text: string;
  kind: "info" | "error";
}

const SHOWN_MS = 6_000;
const TOASTS_MAX = 4;
let toasts: readonly Toast[] = [];
let count = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next.slice(-TOASTS_MAX);
  for (const listener of listeners) listener();
}

/** An error stays until it is closed. */
export function toast(text: string, kind: Toast["kind"] = "info"): void {
  count += 1;
  const id = count;
  set([...toasts, { id, text, kind }]);
  if (kind === "info") setTimeout(() => dismiss(id), SHOWN_MS);
}

export function toastError(error: unknown): void {
  toast(error instanceof Error ? error.message : String(error), "error");
}

function dismiss(id: number): void {
  set(toasts.filter((one) => one.id !== id));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  const text = useWords(common);
  return (
    <div className={styles.toasts} role="status" aria-live="polite">
      {shown.map(({ id, text: message, kind }) => (
        <div key={id} className={styles.toast} data-kind={kind}>
          <span>{message}</span>
          <Button kind="quiet" icon="close" label={text.close} onPress={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
