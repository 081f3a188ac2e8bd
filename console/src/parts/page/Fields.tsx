/** Names with their values, without those that have none. */
import type { ReactNode } from "react";
import styles from "./Fields.module.css";

interface FieldsProps {
  rows: readonly (readonly [name: string, value: ReactNode])[];
  /** Another arrangement than one below the other. */
  className?: string | undefined;
}

export function Fields({ rows, className = styles.fields }: FieldsProps) {
  const shown = rows.filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return (
    <dl className={className}>
      {shown.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
