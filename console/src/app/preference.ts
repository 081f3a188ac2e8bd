/** A choice of the person at this browser, such as the theme. All tabs follow it. */
export interface Preference<Value extends string> {
  get(): Value;
  set(value: Value): void;
  subscribe(listener: () => void): () => void;
}

/** `parse` answers undefined for a stored value that is not one. */
export function preference<Value extends string>(
  name: string,
  initial: Value,
  parse: (stored: string) => Value | undefined,
): Preference<Value> {
  const key = `millrace.${name}`;
  const listeners = new Set<() => void>();
  const read = () => {
    const stored = localStorage.getItem(key);
    return (stored === null ? undefined : parse(stored)) ?? initial;
  };
  let value = read();
  window.addEventListener("storage", (event) => {
    if (event.key !== key) return;
    value = read();
    for (const listener of listeners) listener();
  });
  return {
    get: () => value,
    set(next) {
      value = next;
      localStorage.setItem(key, next);
      for (const listener of listeners) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
