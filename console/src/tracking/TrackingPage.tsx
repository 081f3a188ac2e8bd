/** Files on their way through the stages: the queues, where every shard is, and what is stuck. */
import { useLive } from "../api/live.ts";
import { shell } from "../app/words.ts";
import { Select } from "../parts/controls/Select.tsx";
import { Tabs } from "../parts/controls/Tabs.tsx";
import { Loaded, Page } from "../parts/page/Page.tsx";
import { useWords } from "../words/words.ts";
import { paths, type Queues, STATUSES } from "./api.ts";
import { FileGrid } from "./FileGrid.tsx";
import { FileList } from "./FileList.tsx";
import { Filters } from "./Filters.tsx";
import { trackingRoute } from "./routes.ts";
import { StageCards } from "./StageCards.tsx";
import { StuckList } from "./StuckList.tsx";
import { useTrackingSearch } from "./use-search.ts";
import { tracking } from "./words.ts";

/** Leases expire and shards become overdue without any change that would be reported. */
const PACE = { atMostEveryMs: 2_000, atLeastEveryMs: 30_000 };

export function TrackingPage() {
  const text = useWords(tracking);
  const search = trackingRoute.useSearch();
  const queues = useLive<Queues>(paths.queues, [{ kind: "file" }], PACE);
  const stuck = queues.data?.stages.reduce(
    (sum, { failed, lease_expired: expired, started_long: long }) => sum + failed + expired + long,
    0,
  );
  return (
    <Page title={useWords(shell).tracking}>
      <Loaded result={queues}>{(data) => <StageCards queues={data} />}</Loaded>
      <Tabs
        label={text.views}
        current={search.tab ?? "grid"}
        tabs={[
          { name: "grid", title: text.grid },
          { name: "files", title: text.files },
          { name: "stuck", title: text.stuck, count: stuck },
        ]}
      />
      {search.tab === undefined && <FileGrid filters={<FileFilters />} />}
      {search.tab === "files" && <FileList filters={<FileFilters />} />}
      {search.tab === "stuck" && <StuckList />}
    </Page>
  );
}

function FileFilters() {
  const text = useWords(tracking);
  const [{ status }, set] = useTrackingSearch();
  return (
    <Filters>
      <Select
        label={text.status}
        value={status ?? ""}
        options={[["", text.anyStatus], ...STATUSES.map((one) => [one, text[`is_${one}`]] as const)]}
        onChange={(next) => set({ status: next === "" ? undefined : next })}
      />
    </Filters>
  );
}
