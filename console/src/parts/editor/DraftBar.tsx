/**
 * Says whether a text is saved, and when another version was stored meanwhile, lets the person decide which one goes on. It has the
 * same height before and after the first change, so that nothing moves under the cursor.
 */
import { type ReactNode, useState } from "react";
import { useWords } from "../../words/words.ts";
import { Button } from "../controls/Button.tsx";
import { Difference } from "./Difference.tsx";
import type { Draft, Stored } from "./draft.ts";
import styles from "./Editor.module.css";
import { LeaveGuard } from "./LeaveGuard.tsx";
import { editorWords } from "./words.ts";

interface DraftBarProps {
  draft: Draft;
  stored: Stored;
  /** The name of a version, such as `version 3`. */
  versionText(version: number): string;
  /** A sentence after the state. */
  note?: string | undefined;
  /** A line below the state, such as what a save would change. */
  children?: ReactNode;
  /** The button that saves. */
  actions?: ReactNode;
}

export function DraftBar({ draft, stored, versionText, note, children, actions }: DraftBarProps) {
  const text = useWords(editorWords);
  const [isOpen, setOpen] = useState(true);
  if (!draft.isStale) {
    const state = draft.isChanged ? (draft.isKept ? text.unsaved : text.notKept) : text.nothingUnsaved;
    return (
      <div className={styles.draft} data-changed={draft.isChanged}>
        <LeaveGuard draft={draft} />
        <div className={styles.draftText}>
          <p role="status">
            {state} {note}
          </p>
          {children}
        </div>
        {draft.isChanged && <Button onPress={draft.discard}>{text.discard}</Button>}
        {actions}
      </div>
    );
  }
  const now = versionText(stored.version);
  return (
    <>
      <LeaveGuard draft={draft} />
      <div className={styles.draft} data-changed role="alert">
        <p className={styles.draftText}>{text.changedMeanwhile(now, versionText(draft.base))}</p>
        <Button onPress={() => setOpen(!isOpen)}>{isOpen ? text.hideDifference : text.showDifference}</Button>
        <Button onPress={draft.discard}>{text.discard}</Button>
        <Button kind="primary" onPress={draft.rebase}>
          {text.keepMine(now)}
        </Button>
      </div>
      {isOpen && (
        <Difference
          label={text.mine}
          before={{ title: now, text: stored.text }}
          after={{ title: text.mine, text: draft.text }}
        />
      )}
    </>
  );
}
