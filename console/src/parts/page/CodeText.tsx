/** A text of several lines as it is, such as a statement or a payload. */
import type { ReactNode } from "react";
import styles from "./CodeText.module.css";

interface CodeTextProps {
  children: ReactNode;
  /** Another look than the grey box. */
  className?: string | undefined;
}

export function CodeText({ children, className = styles.code }: CodeTextProps) {
  return (
    // It scrolls, so the keyboard must reach it.
    <pre className={className} tabIndex={0}>
      {children}
    </pre>
  );
}
