/** The events that told of an asset, newest first: runs that read or wrote it, and changes of it. */
import { onEndOf, useLiveList } from "../../api/live.ts";
import { Split } from "../../parts/dialogs/Drawer.tsx";
import { Loaded, Panel } from "../../parts/page/Page.tsx";
import { useWords } from "../../words/words.ts";
import { type LineageEvent, type Listed, paths } from "../api.ts";
import { EventDrawer } from "../EventDrawer.tsx";
import { EventList } from "../EventList.tsx";
import { lineage } from "../words.ts";
import type { AssetViewProps } from "./AssetPage.tsx";

const PAGE = 200;

export function History({ tenant, asset, search, set }: AssetViewProps) {
  const text = useWords(lineage);
  const result = useLiveList<Listed<LineageEvent>>(
    (cursor) => paths.events({ tenant, asset: asset.id, limit: PAGE, cursor }),
    ({ next }) => next,
    [{ kind: "asset", id: asset.id }],
  );
  const { event } = search;
  return (
    <Split
      drawer={
        event !== undefined && (
          <EventDrawer key={event} tenant={tenant} id={event} onClose={() => set({ event: undefined })} />
        )
      }
    >
      <Panel>
        <Loaded result={result}>
          {(pages) => (
            <EventList
              label={text.history}
              events={pages.flatMap(({ items }) => items)}
              live={result.live}
              selected={event}
              onOpen={(id) => set({ event: id })}
              onEnd={onEndOf(result)}
              empty={text.noEvents}
            />
          )}
        </Loaded>
      </Panel>
    </Split>
  );
}
