/** A selection of opTimes of a model: what a backfill of them would run, opTime by opTime, before it is asked for. */
import { useEffect, useState } from "react";
import { act } from "../api/client.ts";
import { refresh } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { toastError } from "../parts/actions/toasts.tsx";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { useWords } from "../words/words.ts";
import { type Backfill, paths } from "./api.ts";
import styles from "./arrivals.module.css";
import { arrivals } from "./words.ts";

interface BackfillDrawerProps {
  modelId: string;
  /** With the code of each cell. */
  opTimes: readonly { opTime: string; code: string }[];
  onClose(): void;
}

export function BackfillDrawer({ modelId, opTimes, onClose }: BackfillDrawerProps) {
  const text = useWords(arrivals);
  const lacked = useWhyNot("kpi:write");
  const [isOnlyMissing, setOnlyMissing] = useState(true);
  const [preview, setPreview] = useState<Backfill>();
  const { isPending, run } = useAction();
  const wanted = opTimes.filter(({ code }) => !isOnlyMissing || code !== "s").map(({ opTime }) => opTime);
  const key = wanted.join(" ");
  useEffect(() => {
    let isCurrent = true;
    const asked = key === "" ? [] : key.split(" ");
    const answer = asked.length === 0 ? Promise.resolve({ runs: 0, items: [] }) : backfill(modelId, asked, true);
    answer.then((found) => isCurrent && setPreview(found)).catch(toastError);
    return () => {
      isCurrent = false;
    };
  }, [modelId, key]);
  const confirm = () =>
    run(async () => {
      const { runs } = await backfill(modelId, wanted, false);
      await refresh({ kind: "model" });
      onClose();
      return text.backfillStarted(runs);
    });
  const found = new Map(preview?.items.map((item) => [item.opTime, item]));
  return (
    <Drawer
      isPassive
      title={text.backfillOf(modelId)}
      onClose={onClose}
      actions={
        <Button
          kind="primary"
          icon="play"
          isPending={isPending}
          isDisabled={!preview || preview.runs === 0}
          why={lacked}
          onPress={() => confirm()}
        >
          {text.backfill(preview?.runs ?? 0)}
        </Button>
      }
    >
      <label>
        <input type="checkbox" checked={isOnlyMissing} onChange={(event) => setOnlyMissing(event.target.checked)} />{" "}
        {text.onlyMissing}
      </label>
      <ul className={styles.list}>
        {opTimes.map(({ opTime }) => {
          const item = found.get(opTime);
          return (
            <li key={opTime} className={styles.pair}>
              <b>{opTime}</b>
              {item?.runs && <StateMark state="running" label={text.willRun} />}
              {item && !item.runs && <StateMark state="waiting" label={text.lacks(item.missing.join(", "))} />}
              {preview && !item && <StateMark state="skipped" label={text.leftOut} />}
            </li>
          );
        })}
      </ul>
    </Drawer>
  );
}

function backfill(modelId: string, opTimes: readonly string[], dryRun: boolean): Promise<Backfill> {
  return act<Backfill>(paths.backfill(modelId), "POST", { opTimes, dryRun });
}
