/** The bar over a log: find, level, follow, copy and download. */
import type { RefObject } from "react";
import { toast, toastError } from "../../parts/actions/toasts.tsx";
import { copyText } from "../../parts/browser-features.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Select } from "../../parts/controls/Select.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { runWords } from "../run/words.ts";
import styles from "./LogView.module.css";
import type { Level, Line, Search } from "./lines.ts";
import type { Log } from "./log.ts";

interface LogBarProps {
  log: Log;
  fileName: string;
  input: RefObject<HTMLInputElement | null>;
  search: Search;
  onSearch(search: Search): void;
  isBad: boolean;
  matches: number;
  /** From 0. */
  match: number;
  onMatch(index: number): void;
  level: Level;
  onLevel(level: Level): void;
  follows: boolean;
  onFollow(follows: boolean): void;
  marked: { from: number; to: number } | undefined;
  isGrowing: boolean;
  /** With all its controls. */
  isWhole: boolean;
}

export function LogBar({ input, ...props }: LogBarProps) {
  const { log, search, onSearch, isBad, matches, match, onMatch, follows, onFollow, marked } = props;
  const text = useWords(runWords);
  const shared = useWords(common);
  const { number } = useFormats();
  const step = (by: number) => onMatch((match + by + matches) % matches);
  return (
    <div className={styles.bar}>
      <input
        ref={input}
        type="search"
        className={styles.find}
        aria-label={text.findInLog}
        placeholder={text.findInLog}
        aria-invalid={isBad}
        title={isBad ? text.badRegex : undefined}
        value={search.text}
        onChange={(event) => onSearch({ ...search, text: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter" && matches > 0) step(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") {
            event.preventDefault(); // It would close the panel, too.
            if (search.text === "") event.currentTarget.blur();
            else onSearch({ ...search, text: "" });
          } else return;
          event.preventDefault();
        }}
      />
      <button
        type="button"
        className={styles.toggle}
        aria-pressed={search.isRegex}
        aria-label={text.regex}
        title={text.regex}
        onClick={() => onSearch({ ...search, isRegex: !search.isRegex })}
      >
        .*
      </button>
      {search.text !== "" && (
        <>
          {/* While the log grows, the number of matches changes every second: no screen reader should read that out. */}
          <span role={props.isGrowing ? undefined : "status"} className={styles.count}>
            {matches === 0 ? (isBad ? text.badRegex : text.notFound) : text.found(number(match + 1), number(matches))}
          </span>
          <Button kind="quiet" label={text.previous} isDisabled={matches === 0} onPress={() => step(-1)}>
            ↑
          </Button>
          <Button kind="quiet" label={text.next} isDisabled={matches === 0} onPress={() => step(1)}>
            ↓
          </Button>
        </>
      )}
      {props.isWhole && (
        <Select<Level>
          label={text.level}
          isLabelHidden
          value={props.level}
          options={[
            ["all", text.allLevels],
            ["warn", text.warnings],
            ["error", text.errorsOnly],
          ]}
          onChange={props.onLevel}
        />
      )}
      <span className={styles.rest}>
        <span className={styles.count}>
          {log.isWhole ? text.lines(log.lines.length, number(log.lines.length)) : text.reading}
        </span>
        <button type="button" className={styles.toggle} aria-pressed={follows} onClick={() => onFollow(!follows)}>
          {text.follow}
        </button>
        {marked && (
          <Button
            kind="quiet"
            icon="copy"
            label={text.copyLines}
            onPress={() => {
              const copied = log.lines.slice(marked.from - 1, marked.to);
              void copyText(textOf(copied)).then(() => toast(shared.copied), toastError);
            }}
          />
        )}
        <Button
          kind="quiet"
          icon="download"
          label={shared.download}
          isDisabled={!log.isWhole || log.lines.length === 0}
          onPress={() => save(props.fileName, log.lines)}
        />
      </span>
    </div>
  );
}

function textOf(lines: readonly Line[]): string {
  return lines.map(({ text }) => text).join("\n");
}

/** With times and levels. */
function save(name: string, lines: readonly Line[]): void {
  const content = lines.map(({ at, level, text }) => `${at} ${level} ${text}\n`).join("");
  const url = URL.createObjectURL(new Blob([content], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
