/** A choice of one. The browser's own list works on every device and for every reader. */
import { useEffect, useId, useState } from "react";
import styles from "./Select.module.css";
import { useSettled } from "./use-settled.ts";

interface SelectProps<Value extends string> {
  label: string;
  value: Value;
  options: readonly (readonly [value: Value, text: string])[];
  onChange(value: Value): void;
  /** The label is for screen readers only. */
  isLabelHidden?: boolean;
}

export function Select<Value extends string>({ label, value, options, onChange, isLabelHidden }: SelectProps<Value>) {
  const id = useId();
  return (
    <span className={styles.select}>
      <label htmlFor={id} className={isLabelHidden ? "visually-hidden" : undefined}>
        {label}
      </label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value as Value)}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </span>
  );
}

interface FilterProps {
  label: string;
  value: string;
  onChange(value: string): void;
}

/** The text filter of a list; `/` moves there. It changes the value when the person pauses. */
export function Filter({ label, value, onChange }: FilterProps) {
  const [typed, setTyped] = useState(value);
  const settled = useSettled(typed);
  const [seen, setSeen] = useState(value);
  const [sent, setSent] = useState(value);
  if (value !== seen) {
    setSeen(value);
    // Changed from outside, for example by a link. The input's own change may also return while the user keeps typing.
    if (value !== sent) {
      setTyped(value);
      setSent(value);
    }
  }
  useEffect(() => {
    if (settled !== typed || settled === sent) return;
    setSent(settled);
    onChange(settled);
  }, [settled, typed, sent, onChange]);
  return (
    <input
      type="search"
      className={styles.filter}
      aria-label={label}
      placeholder={label}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape") event.currentTarget.blur();
      }}
    />
  );
}
