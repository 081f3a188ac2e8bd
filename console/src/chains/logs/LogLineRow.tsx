/** One line of a log: its number, which marks it, its time, and its text with what was found in it. */
import { memo, type ReactNode } from "react";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { runWords } from "../run/words.ts";
import styles from "./LogView.module.css";
import type { Line, Span } from "./lines.ts";

interface LogLineRowProps {
  line: Line;
  top: number;
  spans: readonly Span[];
  isCurrent: boolean;
  isMarked: boolean;
  /** The tab key reaches one line of the log; the arrow keys lead to the others. */
  isReachable: boolean;
  onMark(no: number, isRange: boolean): void;
}

export const LogLineRow = memo(function LogLineRow(props: LogLineRowProps) {
  const { line, top, spans, isCurrent, isMarked, isReachable, onMark } = props;
  const text = useWords(runWords);
  const { clock, time } = useFormats();
  return (
    <div
      className={styles.line}
      style={{ transform: `translateY(${top}px)` }}
      data-level={line.level}
      data-current={isCurrent || undefined}
      data-marked={isMarked || undefined}
    >
      <button
        type="button"
        tabIndex={isReachable ? 0 : -1}
        className={styles.no}
        data-no={line.no}
        aria-pressed={isMarked}
        aria-label={text.lineLink(line.no)}
        onClick={(event) => onMark(line.no, event.shiftKey)}
      >
        {line.no}
      </button>
      <time dateTime={line.at} title={time(line.at)} className={styles.time}>
        {clock(line.at)}
      </time>
      <span className={styles.text}>{withMarks(line.text, spans)}</span>
    </div>
  );
});

function withMarks(text: string, spans: readonly Span[]): ReactNode {
  if (spans.length === 0) return text;
  const parts: ReactNode[] = [];
  let at = 0;
  for (const { from, to } of spans) {
    parts.push(text.slice(at, from), <mark key={from}>{text.slice(from, to)}</mark>);
    at = to;
  }
  parts.push(text.slice(at));
  return parts;
}
