/** Runs of all chains, by state, opTime, trigger and person. */
import { useNavigate } from "@tanstack/react-router";
import { Filter, Select } from "../parts/controls/Select.tsx";
import { Page } from "../parts/page/Page.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import styles from "./chains.module.css";
import { RoomLinks } from "./RoomLinks.tsx";
import { RunList } from "./RunList.tsx";
import { type RunsSearch, runsRoute } from "./routes.ts";
import { chainWords } from "./words.ts";

export function RunsPage() {
  const text = useWords(chainWords);
  const shared = useWords(common);
  const search = runsRoute.useSearch();
  const navigate = useNavigate();
  const set = (change: RunsSearch) =>
    void navigate({ to: "/chains/runs", search: (before) => ({ ...before, ...change }), replace: true });
  const { status, opTime, trigger, person, q, chain } = search;
  return (
    <Page title={text.runs} aside={<RoomLinks />}>
      <div className={styles.filters}>
        <Filter label={shared.filter} value={q ?? ""} onChange={(value) => set({ q: value || undefined })} />
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
          onChange={(value) => set({ status: value || undefined })}
        />
        <Select
          label={text.trigger}
          isLabelHidden
          value={trigger ?? ""}
          options={[
            ["", text.allTriggers],
            ["api", text.api],
            ["schedule", text.schedule],
            ["backfill", text.backfill],
            ["arrival", text.arrival],
            ["chain", text.subChain],
            ["map", text.map],
          ]}
          onChange={(value) => set({ trigger: value || undefined })}
        />
        <TextField label={text.opTime} value={opTime} onChange={(value) => set({ opTime: value })} />
        <TextField label={text.person} value={person} onChange={(value) => set({ person: value })} />
      </div>
      <RunList query={{ status, opTime, trigger, triggeredBy: person, q, chainId: chain }} />
    </Page>
  );
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
