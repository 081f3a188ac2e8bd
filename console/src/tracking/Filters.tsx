/** The filters that all lists of tracking have: the beginning of a file's name, and the stage. */
import type { ReactNode } from "react";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { useWords } from "../words/words.ts";
import { STAGES } from "./api.ts";
import styles from "./tracking.module.css";
import { useTrackingSearch } from "./use-search.ts";
import { tracking } from "./words.ts";

export function Filters({ children }: { children: ReactNode }) {
  const text = useWords(tracking);
  const [{ stage, q }, set] = useTrackingSearch();
  return (
    <div className={styles.bar}>
      <Filter label={text.fileFilter} value={q ?? ""} onChange={(next) => set({ q: next || undefined })} />
      <Select
        label={text.stage}
        value={stage ?? ""}
        options={[["", text.anyStage], ...STAGES.map((one) => [one, one] as const)]}
        onChange={(next) => set({ stage: next === "" ? undefined : next })}
      />
      {children}
    </div>
  );
}
