/** Two texts and what differs, by CodeMirror. Loaded by `Difference`, with the library. */
import { defaultKeymap } from "@codemirror/commands";
import { goToNextChunk, goToPreviousChunk, MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { useEffect, useRef } from "react";
import { useLanguage } from "../../words/words.ts";
import { baseOf } from "./base.ts";
import styles from "./Editor.module.css";

export interface Side {
  title: string;
  text: string;
}

export interface DifferenceViewProps {
  label: string;
  before: Side;
  after: Side;
  isSplit: boolean;
}

const COMMON = {
  collapseUnchanged: { margin: 3, minSize: 6 },
  // Without a limit two large texts that have little in common take minutes.
  diffConfig: { scanLimit: 500, timeout: 300 },
};

export default function DifferenceView({ label, before, after, isSplit }: DifferenceViewProps) {
  const host = useRef<HTMLDivElement>(null);
  const language = useLanguage();
  const { title: titleBefore, text: textBefore } = before;
  const { title: titleAfter, text: textAfter } = after;
  useEffect(() => {
    const parent = host.current;
    if (!parent) return;
    const extensions = (title: string) => [
      baseOf({ label: `${label}: ${title}`, language }),
      EditorState.readOnly.of(true),
      keymap.of([{ key: "F7", run: goToNextChunk, shift: goToPreviousChunk }, ...defaultKeymap]),
    ];
    const made = isSplit
      ? new MergeView({
          ...COMMON,
          parent,
          a: { doc: textBefore, extensions: extensions(titleBefore) },
          b: { doc: textAfter, extensions: extensions(titleAfter) },
        })
      : new EditorView({
          parent,
          doc: textAfter,
          extensions: [
            extensions(`${titleBefore}, ${titleAfter}`),
            unifiedMergeView({ ...COMMON, original: textBefore, mergeControls: false }),
          ],
        });
    return () => made.destroy();
  }, [label, language, titleBefore, textBefore, titleAfter, textAfter, isSplit]);
  return <div ref={host} className={styles.merge} />;
}
