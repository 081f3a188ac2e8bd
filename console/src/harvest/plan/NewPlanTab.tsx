/** What a plan would do, before it is made: the window in whole units, its slices, and what their requests ask for. */

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useId, useState } from "react";
import { type ApiError, act } from "../../api/client.ts";
import { refresh, useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { Select } from "../../parts/controls/Select.tsx";
import { useSettled } from "../../parts/controls/use-settled.ts";
import { DataList } from "../../parts/page/DataList.tsx";
import { Empty, Failure, Loaded, Panel } from "../../parts/page/Page.tsx";
import { useFormats } from "../../parts/times/time.ts";
import { useWords } from "../../words/words.ts";
import { type Draft, type Param, paths, type Source } from "../api.ts";
import styles from "../harvest.module.css";
import { planWords } from "../plan-words.ts";
import { useSourceSearch } from "../use-search.ts";
import { useWindowText, WindowText } from "../WindowText.tsx";
import { endpointsOf, planRequestOf, type WindowKind, windowKindOf } from "./plan-request.ts";
import { divisionText, estimateText, expectedText, ladderText, partText } from "./sizes.ts";

/** Of slices by id. */
const PARTS_SHOWN = 20;

export function NewPlanTab({ source }: { source: string }) {
  const result = useLive<Source>(paths.definition(source), [{ kind: "source", id: source }]);
  return <Loaded result={result}>{(found) => <PlanForm source={found} />}</Loaded>;
}

function PlanForm({ source }: { source: Source }) {
  const text = useWords(planWords);
  const navigate = useNavigate();
  const { search, set } = useSourceSearch(source.source);
  const { run, isPending } = useAction();
  const lacked = useWhyNot("harvest:write");
  const [params, setParams] = useState<Readonly<Record<string, string>>>({});
  const [ids, setIds] = useState(""); // They may be thousands, so they are not in the address.
  const endpoints = endpointsOf(source);
  const endpoint = search.endpoint ?? endpoints[0]?.name ?? "";
  const declared = endpoints.find(({ name }) => name === endpoint)?.params ?? [];
  const kind = windowKindOf(search);
  const hasWindow = search.plans !== "UPDATE";
  const body = planRequestOf(source.source, endpoint, search, params, ids);
  const setKind = (next: WindowKind) =>
    set({
      last: next === "last" ? "P3D" : undefined,
      from: next === "range" ? "" : undefined,
      to: next === "range" ? "" : undefined,
    });
  const start = () =>
    run(async () => {
      const made = await act<Draft>(paths.makePlan(false), "POST", body);
      await refresh({ kind: "plan" }, { kind: "source" });
      if (made.planId !== null) await navigate({ to: "/harvest/plans/$planId", params: { planId: made.planId } });
      return text.made;
    });
  return (
    <>
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (lacked === undefined && body) start();
        }}
      >
        <Select
          label={text.endpoint}
          value={endpoint}
          options={endpoints.map(({ name }) => [name, name] as const)}
          onChange={(next) => set({ endpoint: next })}
        />
        <Select
          label={text.operation}
          value={search.plans ?? "HARVEST"}
          options={[
            ["HARVEST", text.HARVEST],
            ["BACKFILL", text.BACKFILL],
            ["UPDATE", text.UPDATE],
          ]}
          onChange={(next) => set({ plans: next === "HARVEST" ? undefined : next })}
        />
        {search.plans === "UPDATE" && (
          <Select
            label={text.whichRecords}
            value={search.which ?? "due"}
            options={[
              ["due", text.dueRecords],
              ["quarantined", text.quarantinedRecords],
              ["ids", text.namedRecords],
            ]}
            onChange={(next) => set({ which: next === "due" ? undefined : next })}
          />
        )}
        {search.plans === "UPDATE" && search.which === "ids" && <IdsInput value={ids} onChange={setIds} />}
        {hasWindow && (
          <Select
            label={text.whatWindow}
            value={kind}
            options={[
              ["new", search.plans === "BACKFILL" ? text.beforeHarvest : text.sinceWatermark],
              ["last", text.lastDays],
              ["range", text.range],
            ]}
            onChange={setKind}
          />
        )}
        {hasWindow && kind === "last" && (
          <TextInput
            label={text.last}
            hint={text.durationHint}
            value={search.last ?? ""}
            onChange={(last) => set({ last })}
          />
        )}
        {hasWindow && kind === "range" && (
          <>
            <TextInput
              label={text.from}
              hint={text.edgeHint}
              value={search.from ?? ""}
              onChange={(from) => set({ from })}
            />
            <TextInput label={text.to} hint={text.edgeHint} value={search.to ?? ""} onChange={(to) => set({ to })} />
          </>
        )}
        {declared.map((param) => (
          <ParamInput
            key={param.name}
            param={param}
            value={params[param.name] ?? ""}
            onChange={(value) => setParams({ ...params, [param.name]: value })}
          />
        ))}
        <span className={styles.end}>
          <Button type="submit" kind="primary" icon="play" isDisabled={!body || isPending} why={lacked}>
            {text.start}
          </Button>
        </span>
      </form>
      <Panel title={text.dryRun}>
        {lacked === undefined ? (
          <DryRun body={body} missing={hasWindow ? text.fillIn : text.noIds} />
        ) : (
          <Empty>{lacked}</Empty>
        )}
      </Panel>
    </>
  );
}

function ParamInput({ param, value, onChange }: { param: Param; value: string; onChange(value: string): void }) {
  const text = useWords(planWords);
  const label = param.required ? `${param.name} (${text.required})` : param.name;
  return <TextInput label={label} hint={param.pattern ?? ""} value={value} onChange={onChange} />;
}

function IdsInput({ value, onChange }: { value: string; onChange(value: string): void }) {
  const text = useWords(planWords);
  const id = useId();
  return (
    <span className={styles.ids}>
      <label htmlFor={id}>{text.ids}</label>
      <textarea
        id={id}
        className={styles.field}
        rows={4}
        autoComplete="off"
        spellCheck={false}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </span>
  );
}

interface TextInputProps {
  label: string;
  hint: string;
  value: string;
  onChange(value: string): void;
}

function TextInput({ label, hint, value, onChange }: TextInputProps) {
  const id = useId();
  return (
    <span className={styles.input}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="text"
        title={hint}
        placeholder={hint}
        autoComplete="off"
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </span>
  );
}

/** It writes nothing, so it follows the form when the person pauses. */
function DryRun({ body, missing }: { body: object | undefined; missing: string }) {
  const settled = useSettled(body && JSON.stringify(body));
  const result = useQuery<Draft, ApiError>({
    queryKey: ["plan dry run", settled],
    queryFn: () => act<Draft>(paths.makePlan(true), "POST", JSON.parse(settled ?? "")),
    enabled: settled !== undefined,
    retry: false,
  });
  if (settled === undefined) return <Empty>{missing}</Empty>;
  if (result.error?.code === "HARVEST_NOTHING_TO_PLAN") return <Empty>{result.error.message}</Empty>;
  if (result.error) return <Failure error={result.error} />;
  return <Loaded result={result}>{(draft) => <Slices draft={draft} />}</Loaded>;
}

function Slices({ draft }: { draft: Draft }) {
  const text = useWords(planWords);
  const windowText = useWindowText();
  const { number } = useFormats();
  return (
    <div className={styles.stack}>
      <p className={styles.verdict}>
        {text.wouldMake(number(draft.slices))}
        {draft.window && `: ${windowText(draft.window)}`}
        {draft.estimate && `, ${expectedText(text, number, draft.estimate)}`}
      </p>
      {draft.notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
      <Limits draft={draft} />
      {draft.windows && draft.windows.length > 0 && <SliceRows draft={draft} />}
    </div>
  );
}

function SliceRows({ draft: { slices, windows = [] } }: { draft: Draft }) {
  const text = useWords(planWords);
  const { number } = useFormats();
  const rows = windows.map((window, index) => ({ ...window, number: index + 1 }));
  return (
    <>
      {rows.length < slices && <p className={styles.soft}>{text.firstShown(number(rows.length))}</p>}
      <DataList
        label={text.slices}
        rows={rows}
        total={slices}
        keyOf={(row) => String(row.number)}
        empty={text.noSlices}
        columns={[
          { name: "number", title: text.number, width: "60px", align: "end", cell: (row) => row.number },
          {
            name: "window",
            title: text.window,
            width: "minmax(190px, 2fr)",
            cell: (row) => <WindowText window={row} />,
          },
          {
            name: "expected",
            title: text.expectedRecords,
            width: "minmax(80px, 110px)",
            align: "end",
            cell: ({ estimate }) => (
              <span title={estimate ? text[`basis${estimate.basis}`] : undefined}>
                {estimateText(text, number, estimate)}
              </span>
            ),
          },
          {
            name: "first",
            title: text.firstUnit,
            width: "minmax(110px, 1fr)",
            wideOnly: true,
            cell: ({ bounds }) => <code>{bounds.from}</code>,
          },
          {
            name: "last",
            title: text.lastUnit,
            width: "minmax(110px, 1fr)",
            wideOnly: true,
            cell: ({ bounds }) => <code>{bounds.until}</code>,
          },
          {
            name: "division",
            title: text.divided,
            width: "minmax(100px, 3fr)",
            wideOnly: true,
            cell: ({ division }) => {
              const shown = division ? divisionText(text, number, division) : "";
              return (
                <span className={division?.by === "NONE" ? styles.reason : styles.soft} title={shown}>
                  {shown}
                </span>
              );
            },
          },
        ]}
      />
    </>
  );
}

/** What divides slices that turn out too large, in its order. */
function Limits({ draft: { limits, ladder = [], windows = [], parts = [] } }: { draft: Draft }) {
  const text = useWords(planWords);
  const { number } = useFormats();
  const { cap = null, slice = null } = limits ?? {};
  const steps = [...(windows.length > 0 ? [text.byTime] : []), ...ladder.map((step) => ladderText(text, step))];
  return (
    <>
      {slice !== null && windows.length > 0 && <p className={styles.soft}>{text.sliceLimit(number(slice))}</p>}
      {cap !== null && (
        <p className={styles.soft}>{steps.length > 0 ? text.capLimit(number(cap)) : text.capOnly(number(cap))}</p>
      )}
      {cap !== null && steps.length > 0 && (
        <ol className={styles.soft}>
          {steps.map((step) => (
            <li key={step}>{step}</li>
          ))}
        </ol>
      )}
      {parts.length > 0 && (
        <ol className={styles.soft}>
          {parts.slice(0, PARTS_SHOWN).map((part) => {
            const shown = partText(text, part);
            return <li key={shown}>{shown}</li>;
          })}
        </ol>
      )}
    </>
  );
}
