/**
 * The log of one attempt, of any length: lines of one height, of which only those in view exist. The browser's own search cannot
 * see the others, so the log has one of its own. It follows the end until the person scrolls up.
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  useDeferredValue,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useSettled } from "../../parts/controls/use-settled.ts";
import { Empty, Loaded } from "../../parts/page/Page.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { runWords } from "../run/words.ts";
import { LogBar } from "./LogBar.tsx";
import { LogLineRow } from "./LogLineRow.tsx";
import styles from "./LogView.module.css";
import { lineNoOf, useLineKeys } from "./line-keys.ts";
import {
  addressOf,
  type Level,
  markedLines,
  matchesIn,
  ofLevel,
  type Pattern,
  patternOf,
  type Search,
} from "./lines.ts";
import { type Log, useLog } from "./log.ts";

interface LogViewProps {
  runId: string;
  nodeId: string;
  attempt: number;
  isRunning: boolean;
  /** The lines that are marked: `L120`, or `L120-140`. */
  line: string | undefined;
  onLine(line: string | undefined): void;
  /** It has the page to itself, and Ctrl F finds in it wherever the focus is. */
  isWhole?: boolean;
  /** The search and the level of the address, with which the log opens. */
  filter?: LogFilter;
  /** Called when the person pauses typing. */
  onFilter?(filter: LogFilter): void;
}

/** As the address has it. */
export interface LogFilter {
  find?: string | undefined;
  regex?: true | undefined;
  logLevel?: Exclude<Level, "all"> | undefined;
}

export function LogView(props: LogViewProps) {
  const result = useLog(props);
  const { runId, nodeId, attempt } = props;
  return (
    <Loaded result={result}>{(log) => <Lines key={`${runId} ${nodeId} ${attempt}`} {...props} log={log} />}</Loaded>
  );
}

const LINE_PX = 18;
const AHEAD = 30;
const BAR_PX = 56;
/** Of a log beside other things. */
const LINES_SHOWN_MAX = 14;

function Lines({ log, nodeId, attempt, isRunning, line, onLine, isWhole, ...props }: LogViewProps & { log: Log }) {
  const text = useWords(runWords);
  const shared = useWords(common);
  const { number } = useFormats();
  const scroller = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const { filter, onFilter } = props;
  const [search, setSearch] = useState<Search>({ text: filter?.find ?? "", isRegex: filter?.regex ?? false });
  const [level, setLevel] = useState<Level>(filter?.logLevel ?? "all");
  const settled = useSettled(search);
  const [match, setMatch] = useState(0);
  const marked = markedLines(line);
  const [follows, setFollows] = useState(marked === undefined);
  const sought = useDeferredValue(search);
  const { pattern, isBad } = useMemo(() => compiled(sought), [sought]);
  const lines = useMemo(() => ofLevel(log.lines, level), [log.lines, level]);
  const matches = useMemo(() => matchesIn(lines, pattern), [lines, pattern]);
  const current = matches[Math.min(match, matches.length - 1)];
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: AHEAD,
  });

  const tellFilter = useEffectEvent((next: LogFilter) => {
    const { find, regex, logLevel } = filter ?? {};
    if (next.find !== find || next.regex !== regex || next.logLevel !== logLevel) onFilter?.(next);
  });
  useEffect(() => {
    const { text: find, isRegex } = settled;
    tellFilter({
      find: find || undefined,
      regex: isRegex || undefined,
      logLevel: level === "all" ? undefined : level,
    });
  }, [settled, level]);

  useLayoutEffect(() => {
    if (follows && scroller.current) scroller.current.scrollTop = lines.length * LINE_PX;
  }, [follows, lines.length]);
  const markedFrom = marked?.from;
  const hasMarked = useRef(false);
  useEffect(() => {
    if (hasMarked.current || markedFrom === undefined) return;
    // The level leaves lines out, so a line is not at the place of its number.
    const place = lines.findIndex(({ no }) => no >= markedFrom);
    if (place < 0) return;
    hasMarked.current = true;
    virtual.scrollToIndex(place, { align: "center" });
  }, [markedFrom, lines, virtual]);

  function show(index: number): void {
    const place = matches[index];
    if (place === undefined) return;
    setMatch(index);
    setFollows(false);
    virtual.scrollToIndex(place, { align: "center" });
  }
  // As the user types, the first match of the log is shown; for a link, once the log has been read.
  const firstMatch = matches[0];
  const showFirst = useEffectEvent(() => {
    // The line of a link comes before what it searches for.
    const isLinked = marked !== undefined && search.text === filter?.find && !hasMarked.current;
    if (firstMatch !== undefined && !isLinked) show(0);
  });
  useEffect(() => {
    if (pattern && log.isWhole) showFirst();
  }, [pattern, log.isWhole]);

  function onFind(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "preventDefault">): void {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "f") return;
    event.preventDefault();
    input.current?.focus();
    input.current?.select();
  }
  const onAnyKey = useEffectEvent(onFind);
  useEffect(() => {
    if (!isWhole) return;
    const listener = (event: globalThis.KeyboardEvent) => onAnyKey(event);
    document.addEventListener("keydown", listener);
    return () => document.removeEventListener("keydown", listener);
  }, [isWhole]);

  function onScroll(): void {
    const element = scroller.current;
    if (!element) return;
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 2 * LINE_PX;
    if (isAtEnd !== follows) setFollows(isAtEnd);
  }

  // Where a range of lines begins.
  const anchor = useRef(marked?.from);
  function mark(no: number, isRange: boolean): void {
    hasMarked.current = true; // It is in view already.
    if (isRange && anchor.current !== undefined) return onLine(addressOf(anchor.current, no));
    const isOff = marked?.from === no && marked.to === no;
    anchor.current = isOff ? undefined : no;
    onLine(isOff ? undefined : addressOf(no, no));
  }

  const { active, setActive, onKey } = useLineKeys(scroller, lines, virtual, (from, to) => {
    anchor.current ??= from;
    mark(to, true);
  });
  const firstInView = lines[Math.min(Math.ceil((virtual.scrollOffset ?? 0) / LINE_PX), lines.length - 1)]?.no;
  const isActiveDrawn = virtual.getVirtualItems().some(({ index }) => lines[index]?.no === active);
  const reachable = isActiveDrawn ? active : firstInView;

  const digits = String(log.lines.length).length;
  return (
    <section
      className={styles.log}
      data-whole={isWhole || undefined}
      style={isWhole ? undefined : { height: BAR_PX + Math.min(Math.max(lines.length, 3), LINES_SHOWN_MAX) * LINE_PX }}
      aria-label={text.logOf(nodeId, attempt)}
      onKeyDown={(event) => {
        if (!isWhole) onFind(event);
      }}
    >
      <LogBar
        log={log}
        fileName={`${nodeId}-${attempt}.log`}
        input={input}
        search={search}
        onSearch={(next) => {
          setSearch(next);
          setMatch(0);
        }}
        isBad={isBad}
        matches={matches.length}
        match={Math.min(match, Math.max(matches.length - 1, 0))}
        onMatch={show}
        level={level}
        onLevel={setLevel}
        follows={follows}
        onFollow={setFollows}
        marked={marked}
        isGrowing={isRunning}
        isWhole={isWhole ?? false}
      />
      {lines.length === 0 ? (
        <Empty>{log.lines.length > 0 ? shared.noMatch : isRunning ? text.noLinesYet : text.noLines(attempt)}</Empty>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <div
          ref={scroller}
          className={styles.scroller}
          onScroll={onScroll}
          onKeyDown={onKey}
          onFocus={({ target }) => setActive(lineNoOf(target))}
          tabIndex={0}
          role="log"
          aria-live="off"
          aria-label={text.lines(lines.length, number(lines.length))}
        >
          <div
            className={styles.lines}
            style={{ height: virtual.getTotalSize(), "--digits": digits } as React.CSSProperties}
          >
            {virtual.getVirtualItems().map(({ index, start }) => {
              const one = lines[index];
              return (
                one && (
                  <LogLineRow
                    key={one.no}
                    line={one}
                    top={start}
                    spans={pattern?.find(one.text) ?? []}
                    isCurrent={index === current && pattern !== undefined}
                    isMarked={marked !== undefined && marked.from <= one.no && one.no <= marked.to}
                    isReachable={one.no === reachable}
                    onMark={mark}
                  />
                )
              );
            })}
          </div>
        </div>
      )}
    </section>
  );
}

function compiled({ text, isRegex }: Search): { pattern: Pattern; isBad: boolean } {
  try {
    return { pattern: patternOf(text, isRegex), isBad: false };
  } catch {
    return { pattern: undefined, isBad: true };
  }
}
