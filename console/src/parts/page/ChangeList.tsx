/** What differs between two versions of a thing: each field with its value before and after. */
import { words } from "../../words/table.ts";
import { useWords } from "../../words/words.ts";
import styles from "./ChangeList.module.css";

export interface Change {
  field: string;
  /** Absent where the field was not set. */
  from?: unknown;
  to?: unknown;
}

const changeWords = words(
  { was: "was", becomes: "becomes", absent: "not set" },
  { was: "原为", becomes: "变为", absent: "无" },
);

export function ChangeList({ changes }: { changes: readonly Change[] }) {
  const text = useWords(changeWords);
  return (
    <ul className={styles.changes}>
      {changes.map(({ field, from, to }) => (
        <li key={field}>
          <code>{field}</code>
          <span>
            {text.was} <del>{valueText(from) ?? text.absent}</del>
          </span>
          <span>
            {text.becomes} <ins>{valueText(to) ?? text.absent}</ins>
          </span>
        </li>
      ))}
    </ul>
  );
}

function valueText(value: unknown): string | undefined {
  return typeof value === "string" ? value : JSON.stringify(value);
}
