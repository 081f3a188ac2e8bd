/** The frame around every page: menu, search, state of the stream, preferences. */
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useState, useSyncExternalStore } from "react";
import { reach } from "../api/client.ts";
import { streamState } from "../api/live.ts";
import { Toasts, toast, toastError } from "../parts/actions/toasts.tsx";
import { copyText } from "../parts/browser-features.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Icon } from "../parts/controls/icons.tsx";
import { Dialog } from "../parts/dialogs/Dialog.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { NAVIGATION } from "./navigation.ts";
import { PreferencesMenu } from "./PreferencesMenu.tsx";
import styles from "./Shell.module.css";
import { SignInForm } from "./SignIn.tsx";
import { useSessionStatus } from "./session.ts";
import { useShortcuts } from "./shortcuts.ts";
import { shell } from "./words.ts";

const CommandMenu = lazy(() => import("./CommandMenu.tsx"));

export function Shell() {
  const text = useWords(shell);
  const shared = useWords(common);
  const navigate = useNavigate();
  const status = useSessionStatus();
  const [isSearching, setSearching] = useState(false);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const copyLink = () => void copyText(location.href).then(() => toast(shared.copied), toastError);
  useShortcuts({
    onSearch: () => setSearching(true),
    onHelp: () => setHelpOpen(true),
    onCopyLink: copyLink,
    onGo: (letter) => {
      const page = NAVIGATION.find((one) => one.letter === letter);
      if (page) void navigate({ to: page.path });
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
          <kbd>Ctrl K</kbd>
        </button>
        <div className={styles.tools}>
          <LiveChip />
          <Button kind="quiet" icon="link" label={shared.copyLink} onPress={copyLink} />
          <PreferencesMenu />
        </div>
      </header>
      <AwayBanner />
      <nav className={styles.nav} aria-label={text.pages} data-open={isMenuOpen || undefined}>
        {NAVIGATION.map(({ name, path }) => (
          <Link
            key={name}
            to={path}
            activeOptions={{ exact: path === "/", includeSearch: false }}
            className={styles.item}
            onClick={() => setMenuOpen(false)}
          >
            <Icon name={name} />
            <span>{text[name]}</span>
          </Link>
        ))}
      </nav>
      <div className={styles.content}>
        <Outlet />
      </div>
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

/** While the server does not answer: what is shown may be out of date, and nothing can be done. */
function AwayBanner() {
  const text = useWords(shell);
  const { clock } = useFormats();
  const since = useSyncExternalStore(reach.subscribe, reach.awaySince);
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
      {text[state]}
    </span>
  );
}

function KeyboardHelp() {
  const text = useWords(shell);
  const rows: readonly (readonly [string, string])[] = [
    ["j k", text.keyNext],
    ["Enter", text.keyOpen],
    ["Esc", text.keyClose],
    ["/", text.keyFilter],
    ["Ctrl K", text.keySearch],
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
