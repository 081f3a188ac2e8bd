/** Events that could not be applied: why, their text, and trying them again, one or all. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { act } from "../api/client.ts";
import { onEndOf, refresh, useLiveList } from "../api/live.ts";
import { isInPlace } from "../app/search-values.ts";
import { useWhyNot } from "../app/use-why-not.ts";
import { toast, toastError } from "../parts/actions/toasts.tsx";
import { Button } from "../parts/controls/Button.tsx";
import { Dialog } from "../parts/dialogs/Dialog.tsx";
import { Split } from "../parts/dialogs/Drawer.tsx";
import { Loaded, Panel } from "../parts/page/Page.tsx";
import { useFormats } from "../parts/times/time.ts";
import { common } from "../words/common.ts";
import { useWords } from "../words/words.ts";
import { type LineageEvent, type Listed, paths } from "./api.ts";
import { EventDrawer } from "./EventDrawer.tsx";
import { EventList } from "./EventList.tsx";
import { LineagePage } from "./LineagePage.tsx";
import { deadLettersRoute } from "./routes.ts";
import { lineage } from "./words.ts";

const PAGE = 200;
/** So that each request takes seconds, and the count moves. */
const REPLAYED_AT_ONCE = 100;

export function DeadLettersPage() {
  const text = useWords(lineage);
  const search = deadLettersRoute.useSearch();
  const navigate = useNavigate();
  const set = (change: Partial<typeof search>) =>
    void navigate({
      to: "/lineage/dead-letters",
      search: { ...search, ...change },
      replace: isInPlace(search, change, "id"),
    });
  return (
    <LineagePage title={text.deadLetters} tenant={search.tenant} onTenant={(tenant) => set({ tenant, id: undefined })}>
      {(tenant) => <DeadLetters key={tenant} tenant={tenant} id={search.id} onOpen={(id) => set({ tenant, id })} />}
    </LineagePage>
  );
}

interface DeadLettersProps {
  tenant: string;
  id: string | undefined;
  onOpen(id: string | undefined): void;
}

function DeadLetters({ tenant, id, onOpen }: DeadLettersProps) {
  const text = useWords(lineage);
  const result = useLiveList<Listed<LineageEvent>>(
    (cursor) => paths.deadLetters({ tenant, limit: PAGE, cursor }),
    ({ next }) => next,
    [{ kind: "dead-letter" }],
  );
  return (
    <Split
      drawer={id !== undefined && <EventDrawer key={id} tenant={tenant} id={id} onClose={() => onOpen(undefined)} />}
    >
      <Loaded result={result}>
        {(pages) => {
          const events = pages.flatMap(({ items }) => items);
          return (
            <Panel
              title={text.deadLettersMean}
              aside={
                events.length > 0 && (
                  <ReplayAll tenant={tenant} known={events.length} isMore={pages.at(-1)?.next !== null} />
                )
              }
            >
              <EventList
                label={text.deadLetters}
                events={events}
                live={result.live}
                selected={id}
                onOpen={onOpen}
                onEnd={onEndOf(result)}
                empty={text.noDeadLetters}
              />
            </Panel>
          );
        }}
      </Loaded>
    </Split>
  );
}

interface Replayed {
  applied: number;
  dead: number;
  remaining: number;
  next: string | null;
}

interface ReplayAllProps {
  tenant: string;
  /** Dead letters that are listed. */
  known: number;
  /** There are others. */
  isMore: boolean;
}

/** All of them, wherever the list ends. Those that fail again stay. */
function ReplayAll({ tenant, known, isMore }: ReplayAllProps) {
  const text = useWords(lineage);
  const shared = useWords(common);
  const { number } = useFormats();
  const lacked = useWhyNot("lineage:write");
  const [isOpen, setOpen] = useState(false);
  const count = `${number(known)}${isMore ? "+" : ""}`;
  const [done, setDone] = useState<{ applied: number; dead: number }>();
  async function replay(): Promise<void> {
    let [applied, dead] = [0, 0];
    setDone({ applied, dead });
    try {
      for (let after: string | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
        const body: object = { limit: REPLAYED_AT_ONCE, ...(after !== null && { after }) };
        const one: Replayed = await act<Replayed>(paths.replayAll(tenant), "POST", body);
        applied += one.applied;
        dead += one.dead;
        after = one.next;
        setDone({ applied, dead });
      }
      toast(text.replayedAll(number(applied), number(dead)));
    } catch (error) {
      toastError(error);
    }
    await refresh({ kind: "dead-letter" }, { kind: "asset" });
    setDone(undefined);
    setOpen(false);
  }
  return (
    <>
      <Button icon="retry" why={lacked} onPress={() => setOpen(true)}>
        {text.replayAll}
      </Button>
      <Dialog
        title={text.replayAll}
        isOpen={isOpen}
        isRequired={done !== undefined}
        onClose={() => setOpen(false)}
        footer={
          <>
            <Button isDisabled={done !== undefined} onPress={() => setOpen(false)}>
              {shared.cancel}
            </Button>
            <Button kind="primary" isPending={done !== undefined} onPress={() => void replay()}>
              {text.replayCount(count)}
            </Button>
          </>
        }
      >
        <p role="status">
          {done === undefined ? text.replayAllMeans(count) : text.replayedAll(number(done.applied), number(done.dead))}
        </p>
      </Dialog>
    </>
  );
}
