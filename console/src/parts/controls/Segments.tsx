/** A choice of one among a few, all of which are in view: each is one click away, where a list takes two. */
import { useId } from "react";
import styles from "./Segments.module.css";

interface SegmentsProps<Value extends string> {
  label: string;
  value: Value;
  options: readonly (readonly [value: Value, text: string])[];
  onChange(value: Value): void;
}

export function Segments<Value extends string>({ label, value, options, onChange }: SegmentsProps<Value>) {
  const name = useId();
  return (
    <span role="radiogroup" aria-label={label} className={styles.segments}>
      {options.map(([one, text]) => (
        <label key={one} className={styles.segment}>
          <input type="radio" name={name} value={one} checked={one === value} onChange={() => onChange(one)} />
          {text}
        </label>
      ))}
    </span>
  );
}
