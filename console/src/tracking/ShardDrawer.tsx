/** One shard of a file: its state in every stage, who works on it, since when, and what went wrong. */
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { act } from "../api/client.ts";
import { refresh, useLive } from "../api/live.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { useAction } from "../parts/actions/use-action.ts";
import { Button } from "../parts/controls/Button.tsx";
import { Drawer } from "../parts/dialogs/Drawer.tsx";
import { ErrorText } from "../parts/page/ErrorText.tsx";
import { Fields } from "../parts/page/Fields.tsx";
import { Loaded } from "../parts/page/Page.tsx";
import { StateMark } from "../parts/states/StateMark.tsx";
import { durationText } from "../parts/times/durations.ts";
import { Time, useNow } from "../parts/times/Time.tsx";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { paths, type Shard, type ShardPage, STAGES, type Stage, statusIn } from "./api.ts";
import { stateIn } from "./states.ts";
import styles from "./tracking.module.css";
import { useTrackingSearch } from "./use-search.ts";
import { tracking } from "./words.ts";

interface ShardDrawerProps {
  filename: string;
  shard: number;
  onClose(): void;
}

export function ShardDrawer({ filename, shard, onClose }: ShardDrawerProps) {
  const text = useWords(tracking);
  const result = useLive<ShardPage>(paths.shards(filename, { from: shard, limit: 1 }), [
    { kind: "file", id: filename },
  ]);
  return (
    <Drawer title={text.shardOf(filename, shard)} onClose={onClose}>
      <Loaded result={result}>
        {({ items: [found] }) =>
          found?.shard === shard ? <ShardDetail filename={filename} shard={found} /> : <p>{text.noShard}</p>
        }
      </Loaded>
      <Link to="/tracking/files/$filename" params={{ filename }}>
        {text.openFile}
      </Link>
    </Drawer>
  );
}

function ShardDetail({ filename, shard }: { filename: string; shard: Shard }) {
  const text = useWords(tracking);
  return (
    <>
      <ul className={styles.stages}>
        {STAGES.map((stage) => {
          const state = stateIn(shard, stage);
          return (
            <li key={stage}>
              <span>{stage}</span>
              <StateMark
                state={state}
                label={state === "skipped" ? text.notReached : text[`is_${statusIn(shard, stage)}`]}
              />
              {state === "failed" && <RetryStage filename={filename} shard={shard.shard} stage={stage} />}
            </li>
          );
        })}
      </ul>
      {shard.last_error !== undefined && <ErrorText>{shard.last_error}</ErrorText>}
      <Fields
        rows={[
          [text.worker, shard.worker],
          [text.lease, <LeaseLeft key="lease" shard={shard} />],
          [text.lost, shard.lost_count === 0 ? null : text.lostMeans(shard.lost_count)],
          [text.changed, <Time key="changed" at={shard.updated_at} />],
          [text.registered, <Time key="registered" at={shard.created_at} />],
        ]}
      />
    </>
  );
}

export function LeaseLeft({ shard }: { shard: Shard }) {
  const text = useWords(tracking);
  const now = useNow();
  if (shard.leased_until === undefined) {
    const isStarted = STAGES.slice(1).some((stage) => statusIn(shard, stage) === "started");
    return isStarted ? text.noLease : "–";
  }
  const left = Date.parse(shard.leased_until) - now;
  return left >= 0 ? text.leaseLeft(durationText(left)) : text.leaseExpired(durationText(-left));
}

/** Event-ingest belongs to the whole file. */
function RetryStage({ filename, shard, stage }: { filename: string; shard: number; stage: Stage }) {
  const text = useWords(tracking);
  const shared = useWords(common);
  const lacked = useWhyNot("pipeline:write");
  const { isPending, run } = useAction();
  return (
    <Button
      icon="retry"
      isPending={isPending}
      why={lacked}
      onPress={() =>
        run(async () => {
          await act(paths.retryOne(stage), "POST", stage === "event-ingest" ? { filename } : { filename, shard });
          await refresh({ kind: "file" });
          return text.retriedOne;
        })
      }
    >
      {shared.retry}
    </Button>
  );
}

/** The drawer of the shard that the address names, if it names one. */
export function useOpenShard(): ReactNode {
  const [{ file, shard }, set] = useTrackingSearch();
  if (file === undefined || shard === undefined) return undefined;
  const close = () => set({ file: undefined, shard: undefined });
  return <ShardDrawer key={`${file}/${shard}`} filename={file} shard={shard} onClose={close} />;
}
