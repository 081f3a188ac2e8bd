/**
 * An editor of YAML and JSON: errors stand at their line while a person types, and in a list below. Its library is loaded when a
 * page shows an editor; until then the text can be read.
 */
import { lazy, Suspense, useId, useMemo, useState } from "react";
import { useWords } from "../../words/words.ts";
import { CodeText } from "../page/CodeText.tsx";
import type { Mark } from "./CodeView.tsx";
import styles from "./Editor.module.css";
import type { Diagnostic } from "./text.ts";
import { useReadText } from "./use-read-text.ts";
import { editorWords } from "./words.ts";

interface EditorProps {
  /** What is edited, for screen readers. */
  label: string;
  value: string;
  onChange?: ((text: string) => void) | undefined;
  /** What the server says about the text. What is wrong with its YAML is found here. */
  diagnostics?: readonly Diagnostic[];
  readOnly?: boolean;
  /** The cursor moves to this value, each time that it is another object. */
  reveal?: { path: readonly string[] } | undefined;
}

const CodeView = lazy(() => import("./CodeView.tsx"));
const NONE: readonly Diagnostic[] = [];

export function Editor({ label, value, onChange, diagnostics = NONE, readOnly = false, reveal }: EditorProps) {
  const text = useWords(editorWords);
  const hint = useId();
  const { read, isFirst } = useReadText(value);
  const marks = useMemo(
    () => [...read.problems, ...diagnostics].map((one): Mark => ({ ...one, place: read.placeOf(one) })),
    [read, diagnostics],
  );
  const [picked, setPicked] = useState<{ offset: number }>();
  const [revealed, setRevealed] = useState<typeof reveal>();
  if (reveal !== revealed) {
    setRevealed(reveal);
    if (reveal) setPicked({ offset: read.placeOf(reveal).from });
  }
  return (
    <div className={styles.editor}>
      <p id={hint} className="visually-hidden">
        {text.leave}
      </p>
      <div className={styles.frame}>
        <Suspense fallback={<CodeText className={styles.plain}>{value}</CodeText>}>
          <CodeView
            label={label}
            describedBy={hint}
            value={value}
            onChange={onChange}
            readOnly={readOnly}
            marks={marks}
            cursor={picked}
          />
        </Suspense>
      </div>
      {!readOnly && !isFirst && <Problems marks={marks} onPick={({ place }) => setPicked({ offset: place.from })} />}
    </div>
  );
}

function Problems({ marks, onPick }: { marks: readonly Mark[]; onPick(mark: Mark): void }) {
  const text = useWords(editorWords);
  return (
    <section className={styles.problems} aria-label={text.problems}>
      <p role="status" className={styles.count} data-any={marks.length > 0}>
        {marks.length === 0 ? text.noProblems : text.problemCount(marks.length)}
      </p>
      {marks.length > 0 && (
        <ul>
          {marks.map((mark, index) => (
            // Two problems may be equal, and the list is drawn anew with each check.
            // oxlint-disable-next-line react/no-array-index-key
            <li key={index} data-severity={mark.severity}>
              <button type="button" onClick={() => onPick(mark)}>
                <span>{text.atLine(mark.place.line)}</span> {mark.message}
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
