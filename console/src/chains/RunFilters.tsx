/** The filters of a list of runs: words, state, trigger, opTime, person, and what the runs wait for. */
import { Button } from "../parts/controls/Button.tsx";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import styles from "./chains.module.css";
import type { RunsSearch } from "./routes.ts";
import { chainWords } from "./words.ts";

interface RunFiltersProps {
  search: RunsSearch;
  onChange(change: RunsSearch): void;
}

export function RunFilters({ search: { status, opTime, trigger, person, q, waitsFor }, onChange }: RunFiltersProps) {
  const text = useWords(chainWords);
  const shared = useWords(common);
  return (
    <div className={styles.filters}>
      <Filter label={shared.filter} value={q ?? ""} onChange={(value) => onChange({ q: value || undefined })} />
      <Select
        label={shared.state}
        isLabelHidden
        value={status ?? ""}
        options={[
          ["", text.allStates],
          ["RUNNING", shared.running],
          ["PENDING", shared.waiting],
          ["FAILED", shared.failed],
          ["STOPPED", shared.stopped],
          ["SUCCESS", shared.success],
        ]}
        onChange={(value) => onChange({ status: value || undefined })}
      />
      <Select
        label={text.trigger}
        isLabelHidden
        value={trigger ?? ""}
        options={[
          ["", text.allTriggers],
          ["api", text.byHand],
          ["schedule", text.schedule],
          ["backfill", text.backfill],
          ["arrival", text.arrival],
          ["chain", text.subChain],
          ["map", text.map],
        ]}
        onChange={(value) => onChange({ trigger: value || undefined })}
      />
      <TextField label={text.opTime} value={opTime} onChange={(value) => onChange({ opTime: value })} />
      <TextField label={text.person} value={person} onChange={(value) => onChange({ person: value })} />
      {waitsFor !== undefined && (
        <Button icon="close" onPress={() => onChange({ waitsFor: undefined })}>
          {waitText(text, waitsFor)}
        </Button>
      )}
    </div>
  );
}

/** Such a filter comes from a link of another page, and can only be removed. */
function waitText(text: (typeof chainWords)["en"], waitsFor: string): string {
  const [cause = "", ...parts] = waitsFor.split(":");
  const name = parts.join(":");
  const causes: Readonly<Record<string, string>> = {
    table: text.waitsForTable(name),
    pool: text.waitsForPool(name),
    slot: text.waitsForSlot,
    retry: text.waitsForRetry,
  };
  return causes[cause] ?? waitsFor;
}

interface TextFieldProps {
  label: string;
  value: string | undefined;
  onChange(value: string | undefined): void;
}

/** A filter for the exact text; it applies when the person has finished it. */
function TextField({ label, value, onChange }: TextFieldProps) {
  return (
    <input
      key={value ?? ""}
      type="text"
      aria-label={label}
      placeholder={label}
      defaultValue={value}
      onBlur={(event) => onChange(event.target.value || undefined)}
      onKeyDown={(event) => {
        if (event.key === "Enter") onChange(event.currentTarget.value || undefined);
      }}
    />
  );
}
