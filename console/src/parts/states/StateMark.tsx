/** A state as glyph, colour and word. */
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import styles from "./StateMark.module.css";
import { GLYPHS, type State } from "./state.ts";

interface StateMarkProps {
  state: State;
  /** The module's own word for it. */
  label?: string;
  /** Instead of that of the state. */
  glyph?: string | undefined;
  compact?: boolean;
  /** The label is a sentence, and may need more than one line. */
  isSentence?: boolean;
}

export function StateMark({ state, label, glyph, compact, isSentence }: StateMarkProps) {
  const text = useWords(common);
  const word = label ?? text[state];
  return (
    <span className={styles.mark} data-state={state} data-sentence={isSentence} title={compact ? word : undefined}>
      <span className={styles.glyph} aria-hidden="true">
        {glyph ?? GLYPHS[state]}
      </span>
      <span className={compact ? "visually-hidden" : undefined}>{word}</span>
    </span>
  );
}
