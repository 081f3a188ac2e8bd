/** The frame around every page: menu, search, state of the stream, preferences. */
import { useIsFetching } from "@tanstack/react-query";
import { Link, Outlet, useLocation, useMatches, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useLayoutEffect, useRef, useState, useSyncExternalStore } from "react";
import { connectivity } from "../api/client.ts";
import { readAgeMs, streamState } from "../api/live.ts";
import { Toasts, toast, toastError } from "../parts/actions/toasts.tsx";
import { copyText } from "../parts/browser-features.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Icon } from "../parts/controls/icons.tsx";
import { Dialog } from "../parts/dialogs/Dialog.tsx";
import { durationText } from "../parts/times/durations.ts";
import { useNow } from "../parts/times/Time.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { keepSearch, lastSearchOf } from "./last-search.ts";
import { NAVIGATION } from "./navigation.ts";
import { PreferencesMenu } from "./PreferencesMenu.tsx";
import styles from "./Shell.module.css";
import { SignInForm } from "./SignIn.tsx";
import { useSessionStatus } from "./session.ts";
import { useShortcuts } from "./shortcuts.ts";
import { shell } from "./words.ts";

const CommandMenu = lazy(() => import("./CommandMenu.tsx"));

const SEARCH_KEYS = /^(?:Mac|iP)/.test(navigator.platform) ? "⌘ K" : "Ctrl K";

export function Shell() {
  const text = useWords(shell);
  const shared = useWords(common);
  const navigate = useNavigate();
  const status = useSessionStatus();
  const [isSearching, setSearching] = useState(false);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  // The menu would cover the sign-in form.
  if (isSearching && status.is === "ended") setSearching(false);
  const copyLink = () => void copyText(location.href).then(() => toast(shared.copied), toastError);
  useShortcuts({
    onSearch: () => setSearching(true),
    onHelp: () => setHelpOpen(true),
    onCopyLink: copyLink,
    onGo: (letter) => {
      const page = NAVIGATION.find((one) => one.letter === letter);
      if (page) void navigate({ to: page.path, search: menuSearch(page.path) });
    },
  });
  return (
    <div className={styles.shell}>
      <a href="#main" className={styles.skip}>
        {text.skipToContent}
      </a>
      <header className={styles.top}>
        <span className={styles.menuButton}>
          <Button kind="quiet" icon="menu" label={text.menu} onPress={() => setMenuOpen(!isMenuOpen)} />
        </span>
        <Link to="/" className={styles.brand}>
          Millrace
        </Link>
        <button
          type="button"
          className={styles.search}
          aria-label={text.searchEverything}
          onClick={() => setSearching(true)}
        >
          <Icon name="search" />
          <span>{text.searchEverything}</span>
          <kbd>{SEARCH_KEYS}</kbd>
        </button>
        <div className={styles.tools}>
          <LiveChip />
          <Button kind="quiet" icon="link" label={shared.copyLink} onPress={copyLink} />
          <PreferencesMenu />
        </div>
      </header>
      <AwayBanner />
      {isMenuOpen && <div className={styles.beside} onPointerDown={() => setMenuOpen(false)} />}
      <nav
        className={styles.nav}
        aria-label={text.pages}
        data-open={isMenuOpen || undefined}
        onKeyDown={({ key }) => {
          if (key === "Escape") setMenuOpen(false);
        }}
      >
        <MenuLinks onClick={() => setMenuOpen(false)} />
      </nav>
      <Content />
      <Toasts />
      {isSearching && (
        <Suspense>
          <CommandMenu onClose={() => setSearching(false)} />
        </Suspense>
      )}
      <Dialog title={text.keyboardHelp} isOpen={isHelpOpen} onClose={() => setHelpOpen(false)}>
        <KeyboardHelp />
      </Dialog>
      <Dialog title={text.signInTitle} isOpen={status.is === "ended"} onClose={() => {}} isRequired>
        <p>{text.sessionEnded}</p>
        <SignInForm />
      </Dialog>
    </div>
  );
}

/** Each leads to the page with its last filters; that of the page that is shown clears them. */
function MenuLinks({ onClick }: { onClick(): void }) {
  const text = useWords(shell);
  const { pathname, search } = useLocation();
  useEffect(() => {
    if (NAVIGATION.some(({ path }) => path === pathname)) keepSearch(pathname, search);
  }, [pathname, search]);
  return NAVIGATION.map(({ name, path }) => (
    <Link
      key={name}
      to={path}
      search={menuSearch(path)}
      activeOptions={{ exact: path === "/", includeSearch: false }}
      className={styles.item}
      onClick={onClick}
    >
      <Icon name={name} />
      <span>{text[name]}</span>
    </Link>
  ));
}

function menuSearch(path: string): never {
  return (path === location.pathname ? {} : lastSearchOf(path)) as never;
}

/** The page. A new page starts at the top; switching a tab or opening a drawer keeps the scroll position. */
function Content() {
  const content = useRef<HTMLDivElement>(null);
  const page = useMatches({ select: (matches) => matches.at(-1)?.pathname });
  // Braces: scrollTo may return a promise, which React would take for a cleanup function.
  useLayoutEffect(() => {
    content.current?.scrollTo(0, 0);
    // oxlint-disable-next-line react/exhaustive-deps
  }, [page]);
  // Queries without data of their own: loading for the first time, or showing data of other filters.
  const reading = useIsFetching({ predicate: ({ state }) => state.data === undefined });
  return (
    // The id per page makes the router restore the scroll position of this page, not that of the previous one.
    <div ref={content} className={styles.content} data-scroll-restoration-id={page}>
      {reading > 0 && <div className={styles.reading} />}
      <Outlet />
    </div>
  );
}

/** Shown while the server is unreachable: the data may be out of date, and actions fail. */
function AwayBanner() {
  const text = useWords(shell);
  const { clock } = useFormats();
  const since = useSyncExternalStore(connectivity.subscribe, connectivity.unreachableSince);
  return (
    <div role="alert" className={styles.away}>
      {since !== undefined && <p>{text.awaySince(clock(since))}</p>}
    </div>
  );
}

function LiveChip() {
  const text = useWords(shell);
  const state = useSyncExternalStore(streamState.subscribe, streamState.get);
  const means = { live: text.liveMeans, polling: text.pollingMeans, paused: text.pausedMeans }[state];
  return (
    <span className={styles.chip} data-state={state} title={means}>
      <span>{text[state]}</span>
      {state === "polling" && <DataAge />}
    </span>
  );
}

function DataAge() {
  useNow();
  return <span>{durationText(readAgeMs())}</span>;
}

function KeyboardHelp() {
  const text = useWords(shell);
  const rows: readonly (readonly [string, string])[] = [
    ["j k", text.keyNext],
    ["Enter", text.keyOpen],
    ["Esc", text.keyClose],
    ["/", text.keyFilter],
    [SEARCH_KEYS, text.keySearch],
    ["y", text.keyCopyLink],
    ["g", text.keyGo],
    ...NAVIGATION.map(({ name, letter }) => [`g ${letter}`, text[name]] as const),
  ];
  return (
    <dl className={styles.keys}>
      {rows.map(([key, meaning]) => (
        <div key={key}>
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}
