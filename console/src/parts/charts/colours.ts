/** The colours of tokens.css as a canvas needs them: resolved for the theme that is shown, and again when it changes. */
import { useMemo, useSyncExternalStore } from "react";

/** The colours that were asked for since the theme changed. */
let known = new Map<string, string>();
const listeners = new Set<() => void>();
let unwatch: (() => void) | undefined;

/** Watches what decides on the theme: the attribute that the preference sets, and the system's setting. */
function watch(): () => void {
  const changed = () => {
    known = new Map();
    for (const listener of listeners) listener();
  };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  system.addEventListener("change", changed);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", changed);
  };
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  unwatch ??= watch();
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    unwatch?.();
    unwatch = undefined;
  };
}

/** By the names of the tokens, without `--`. Give the same array each time. */
export function useColours<const Name extends string>(names: readonly Name[]): Readonly<Record<Name, string>> {
  const resolved = useSyncExternalStore(subscribe, () => known);
  return useMemo(
    () => Object.fromEntries(names.map((name) => [name, colourOf(name, resolved)])) as Record<Name, string>,
    [names, resolved],
  );
}

function colourOf(name: string, resolved: Map<string, string>): string {
  const before = resolved.get(name);
  if (before !== undefined) return before;
  // A custom property is answered as it is written; a colour resolves light-dark().
  const probe = document.createElement("span");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  resolved.set(name, color);
  return color;
}
