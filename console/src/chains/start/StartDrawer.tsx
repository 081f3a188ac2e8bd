/** Starts a run: its opTime, the parameters that the nodes read, and what the server would answer, before it is asked for. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useId, useMemo, useState } from "react";
import { type ApiError, call, withQuery } from "../../api/client.ts";
import { refresh, useLive } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { toastError } from "../../parts/actions/toasts.tsx";
import { newId } from "../../parts/browser-features.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { useSettled } from "../../parts/controls/use-settled.ts";
import { Drawer } from "../../parts/dialogs/Drawer.tsx";
import { readText } from "../../parts/editor/text.ts";
import { Skeleton } from "../../parts/page/Page.tsx";
import { useWords } from "../../words/words.ts";
import { type Chain, paths, type RunPage } from "../api.ts";
import styles from "../definition.module.css";
import { definitionWords } from "../editor/words.ts";
import { paramsOf, typedText, typedValue } from "./params.ts";

interface StartDrawerProps {
  chain: Chain;
  onClose(): void;
}

export function StartDrawer({ chain, onClose }: StartDrawerProps) {
  const last = useLive<RunPage>(paths.runs({ chainId: chain.chainId, size: 1 }));
  const text = useWords(definitionWords);
  // The fields are filled in once, so they wait for the last run.
  if (!last.data && !last.error)
    return (
      <Drawer title={text.startOf(chain.name)} onClose={onClose}>
        <Skeleton />
      </Drawer>
    );
  const [run] = last.data?.items ?? [];
  return <StartForm chain={chain} lastOpTime={run?.opTime ?? null} lastParams={run?.params ?? {}} onClose={onClose} />;
}

interface StartFormProps extends StartDrawerProps {
  lastOpTime: string | null;
  lastParams: Readonly<Record<string, unknown>>;
}

function StartForm({ chain, lastOpTime, lastParams, onClose }: StartFormProps) {
  const text = useWords(definitionWords);
  const navigate = useNavigate();
  const missing = useWhyNot("run:write");
  const form = useId();
  const names = useMemo(() => paramsOf(chain.dag.nodes), [chain]);
  const [opTime, setOpTime] = useState("");
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(names.map((name) => [name, typedText(lastParams[name])])),
  );
  const [further, setFurther] = useState("");
  // With it, a start whose answer was lost can be asked for again and starts no second run.
  const [key] = useState(newId);
  const [isStarting, setStarting] = useState(false);
  const more = readText(further);
  const typed = names.flatMap((name) => (values[name] ? [[name, typedValue(values[name])] as const] : []));
  const body = {
    params: { ...Object.fromEntries(typed), ...more.value },
    ...(opTime !== "" && { opTime }),
  };
  const bodyText = JSON.stringify(body);
  const asked = useSettled(bodyText);
  const path = paths.chainAction(chain.chainId, "start");
  const preview = useQuery<{ nodes: number }, ApiError>({
    queryKey: [path, "preview", chain.version, chain.enabled, asked],
    queryFn: async ({ signal }) =>
      (
        await call<{ nodes: number }>(withQuery(path, { dryRun: true }), {
          method: "POST",
          body: JSON.parse(asked),
          signal,
        })
      ).data,
    enabled: missing === undefined,
  });
  const waits = chain.dag.nodes.some(({ waitsFor = [] }) => waitsFor.length > 0);

  async function start(event: FormEvent): Promise<void> {
    event.preventDefault();
    setStarting(true);
    try {
      const { data } = await call<{ runId: string }>(path, {
        method: "POST",
        body,
        headers: { "idempotency-key": key },
      });
      await refresh({ kind: "run" });
      await navigate({ to: "/chains/runs/$runId", params: { runId: data.runId } });
    } catch (error) {
      toastError(error);
      setStarting(false);
    }
  }
  return (
    <Drawer
      title={text.startOf(chain.name)}
      onClose={onClose}
      actions={
        <Button
          type="submit"
          form={form}
          kind="primary"
          icon="play"
          isPending={isStarting}
          isDisabled={!preview.data || asked !== bodyText}
          why={missing}
        >
          {text.start}
        </Button>
      }
    >
      <form id={form} className={styles.form} onSubmit={(event) => void start(event)}>
        <label className={styles.field}>
          <span>{text.opTime}</span>
          <input value={opTime} required={waits} onChange={({ target }) => setOpTime(target.value.trim())} />
          {waits && <span className={styles.hint}>{text.opTimeNeeded}</span>}
          {lastOpTime !== null && <span className={styles.hint}>{text.lastOpTime(lastOpTime)}</span>}
        </label>
        {names.map((name) => (
          <label key={name} className={styles.field}>
            <span>{name}</span>
            <input
              value={values[name] ?? ""}
              onChange={({ target }) => setValues({ ...values, [name]: target.value })}
            />
          </label>
        ))}
        {names.length > 0 && <p className={styles.hint}>{text.startHint}</p>}
        <label className={styles.field}>
          <span>{text.furtherParams}</span>
          <textarea value={further} spellCheck={false} onChange={({ target }) => setFurther(target.value)} />
          {more.problems.map(({ message }) => (
            <span key={message} className={styles.hint}>
              {message}
            </span>
          ))}
        </label>
      </form>
      <p role="status" className={styles.verdict} data-refused={preview.error !== null}>
        {preview.error?.message ?? (preview.data && text.willStart(chain.version, preview.data.nodes))}
      </p>
    </Drawer>
  );
}
