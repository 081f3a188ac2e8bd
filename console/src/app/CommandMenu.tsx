/** Ctrl K: goes to a page, or to what the modules have found. */
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useId, useRef, useState } from "react";
import { FINDERS } from "../finders.ts";
import { Icon, type IconName } from "../parts/controls/icons.tsx";
import { useWords } from "../words/words.ts";
import styles from "./CommandMenu.module.css";
import type { Found } from "./found.ts";
import { NAVIGATION } from "./navigation.ts";
import { useLacking } from "./session.ts";
import { shell } from "./words.ts";

const TYPING_MS = 150;
const FOUND_MAX = 20;

interface Entry extends Found {
  icon: IconName;
}

export default function CommandMenu({ onClose }: { onClose(): void }) {
  const text = useWords(shell);
  const navigate = useNavigate();
  const list = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [active, setActive] = useState(0);
  const lacks = useLacks();
  const { found, isSearching } = useFound(query);
  const pages = NAVIGATION.filter(({ name }) => text[name].toLowerCase().includes(query.trim().toLowerCase())).map(
    ({ name, path }): Entry => ({ icon: name, title: text[name], to: path }),
  );
  const entries = [...pages, ...found];
  const options = useRef<HTMLDivElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    options.current?.children[active]?.scrollIntoView({ block: "nearest" });
  }, [active]);

  function open(entry: Entry | undefined): void {
    if (!entry) return;
    onClose();
    void navigate({ href: entry.to });
  }
  return (
    <dialog
      ref={dialog}
      className={styles.menu}
      aria-label={text.searchEverything}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className={styles.field}>
        <Icon name="search" />
        <input
          role="combobox"
          aria-expanded="true"
          aria-controls={list}
          aria-activedescendant={entries[active] ? `${list}-${active}` : undefined}
          aria-label={text.searchEverything}
          placeholder={text.searchHint}
          value={query}
          autoFocus
          onChange={(event) => {
            setQuery(event.target.value);
            setActive(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown") setActive(Math.min(active + 1, entries.length - 1));
            else if (event.key === "ArrowUp") setActive(Math.max(active - 1, 0));
            else if (event.key === "Enter") open(entries[active]);
            else return;
            event.preventDefault();
          }}
        />
      </div>
      <div ref={options} role="listbox" id={list} aria-label={text.searchEverything} className={styles.list}>
        {entries.map((entry, index) => (
          <div
            key={entry.to}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === active}
            className={styles.option}
            onClick={() => open(entry)}
          >
            <Icon name={entry.icon} />
            <span>{entry.title}</span>
            {entry.detail !== undefined && <small>{entry.detail}</small>}
          </div>
        ))}
        {(isSearching || entries.length === 0) && (
          <p role="status">{isSearching ? text.searching : text.nothingFound}</p>
        )}
        {query.trim() !== "" && lacks.length > 0 && <p>{text.notSearched(lacks.join(", "))}</p>}
      </div>
    </dialog>
  );
}

/** The scopes of modules that cannot be searched. */
function useLacks(): readonly string[] {
  const lacks = useLacking();
  return FINDERS.map(({ scope }) => scope).filter(lacks);
}

/**
 * Queries every module after a pause in typing and appends the results of each module as they arrive. Results of an earlier query
 * stay only if they match the current text, so that Enter opens nothing else. A module that fails, or that the key may not read,
 * yields no results.
 */
function useFound(query: string): { found: readonly Entry[]; isSearching: boolean } {
  const wanted = query.trim();
  const [found, setFound] = useState<ReadonlyMap<IconName, readonly Entry[]>>(new Map());
  const [searched, setSearched] = useState("");
  useEffect(() => {
    if (wanted === "") return undefined;
    const abandoned = new AbortController();
    const timer = setTimeout(async () => {
      setSearched("");
      const searches = FINDERS.map(async ({ icon, find }) => {
        const some = await find(wanted, abandoned.signal).catch(() => []);
        if (abandoned.signal.aborted) return;
        const entries = some.slice(0, FOUND_MAX).map((one) => ({ ...one, icon }));
        setFound((before) => new Map(before).set(icon, entries));
      });
      await Promise.all(searches);
      if (!abandoned.signal.aborted) setSearched(wanted);
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      abandoned.abort();
    };
  }, [wanted]);
  const isSearching = wanted !== "" && searched !== wanted;
  const byAddress = new Map([...found.values()].flat().map((one) => [one.to, one]));
  const words = wanted.toLowerCase().split(/\s+/);
  const has = ({ title, detail = "" }: Entry) =>
    words.every((word) => `${title} ${detail}`.toLowerCase().includes(word));
  return { found: wanted === "" ? [] : [...byAddress.values()].filter((one) => !isSearching || has(one)), isSearching };
}
