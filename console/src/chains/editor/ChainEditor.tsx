/**
 * Edits a chain as text, beside its graph. The server checks each change, with errors at their line; a save carries the version
 * that the text was made from, so that two people do not overwrite each other.
 */
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useMemo, useState } from "react";
import { ApiError } from "../../api/client.ts";
import { refresh } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { toastError } from "../../parts/actions/toasts.tsx";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { DraftBar } from "../../parts/editor/DraftBar.tsx";
import { type Stored, useDraft } from "../../parts/editor/draft.ts";
import { Editor } from "../../parts/editor/Editor.tsx";
import type { Diagnostic } from "../../parts/editor/text.ts";
import { useReadText } from "../../parts/editor/use-read-text.ts";
import { Skeleton } from "../../parts/page/Page.tsx";
import { useWords } from "../../words/words.ts";
import type { Chain } from "../api.ts";
import styles from "../definition.module.css";
import { DifferenceSummary } from "../versions/DifferenceSummary.tsx";
import { differenceOf } from "../versions/difference.ts";
import { chainWords } from "../words.ts";
import { send, useSaveCheck } from "./check.ts";
import {
  bodyOf,
  type ChainBody,
  chainText,
  chainTextApart,
  diagnosticsOf,
  fieldsIn,
  isLarge,
  NEW_CHAIN,
  pathToNode,
} from "./definition.ts";
import { TextGraph } from "./TextGraph.tsx";
import { definitionWords } from "./words.ts";

const NONE: readonly Diagnostic[] = [];

/** Without a chain, a new one is made. */
export function ChainEditor({ chain }: { chain?: Chain }) {
  const stored = useStored(chain);
  return stored ? <StoredEditor chain={chain} stored={stored} /> : <Skeleton />;
}

/** The text of a large chain is not there at once. */
function useStored(chain: Chain | undefined): Stored | undefined {
  const [written, setWritten] = useState<Stored>();
  const atOnce = useMemo(() => {
    if (!chain) return { text: NEW_CHAIN, version: 0 };
    return isLarge(chain) ? undefined : { text: chainText(chain), version: chain.version };
  }, [chain]);
  useEffect(() => {
    if (!chain || !isLarge(chain)) return undefined;
    let isGone = false;
    void chainTextApart(chain).then((text) => !isGone && setWritten({ text, version: chain.version }), toastError);
    return () => {
      isGone = true;
    };
  }, [chain]);
  return atOnce ?? written;
}

function StoredEditor({ chain, stored }: { chain: Chain | undefined; stored: Stored }) {
  const text = useWords(definitionWords);
  const { versionOf } = useWords(chainWords);
  const navigate = useNavigate();
  const { isPending, run } = useAction();
  const why = useWhyNot("chain:write");
  const draft = useDraft(`chain.${chain?.chainId ?? "new"}`, stored);
  const { read, isCurrent, isFirst } = useReadText(draft.text);
  const asked = useMemo(() => read.value && bodyOf(read.value, !chain, text), [read, chain, text]);
  const body = asked && "body" in asked ? asked.body : undefined;
  const target = { chainId: chain?.chainId, version: draft.base };
  const { answer: refusal, isAway } = useSaveCheck(target, draft.isChanged || !chain ? body : undefined);
  const diagnostics = useMemo(() => {
    if (asked && "problems" in asked) return asked.problems;
    return refusal && read.value ? diagnosticsOf(refusal, read.value) : NONE;
  }, [asked, refusal, read]);
  const [reveal, setReveal] = useState<{ path: readonly string[] }>();
  const hasProblems = diagnostics.length + read.problems.length > 0;
  const isUnchanged = chain !== undefined && !draft.isChanged;

  const save = () =>
    run(async () => {
      if (!body) throw new Error(text.fixFirst);
      try {
        const { data } = await send(target, body, false);
        if (chain) {
          draft.saved({ text: await chainTextApart(data), version: data.version });
          await refresh({ kind: "chain", id: data.chainId });
          return text.saved(data.version);
        }
        draft.discard();
        await navigate({ to: "/chains/$chainId", params: { chainId: data.chainId } });
        return text.created(data.name);
      } catch (error) {
        if (chain && error instanceof ApiError && error.code === "VERSION_CONFLICT")
          await refresh({ kind: "chain", id: chain.chainId });
        throw error;
      }
    });
  const isSaveable = why === undefined && !hasProblems && !isUnchanged && isCurrent && !draft.isStale && !isPending;
  function onKey(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    if (isSaveable) save();
  }
  return (
    // Ctrl S saves wherever the cursor is.
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions
    <div className={styles.edit} onKeyDown={onKey}>
      <DraftBar
        draft={draft}
        stored={stored}
        versionText={versionOf}
        note={read.hasComments ? text.comments : undefined}
        actions={
          <Button
            kind="primary"
            icon="check"
            isPending={isPending}
            isDisabled={!isCurrent}
            why={why ?? (hasProblems ? text.fixFirst : isUnchanged ? text.unchanged : undefined)}
            onPress={save}
          >
            {text.save}
          </Button>
        }
      >
        <div className={styles.note}>
          {isAway ? (
            <p role="alert">{text.away}</p>
          ) : chain && draft.isChanged && body ? (
            <Summary chain={chain} body={body} />
          ) : (
            <p>{text.eachSave}</p>
          )}
        </div>
      </DraftBar>
      <div className={styles.beside}>
        <Editor
          label={chain ? text.definitionOf(chain.name) : text.newChain}
          value={draft.text}
          onChange={draft.change}
          diagnostics={diagnostics}
          readOnly={why !== undefined}
          reveal={reveal}
        />
        <TextGraph
          isUnread={isFirst}
          value={read.value}
          diagnostics={diagnostics}
          onOpen={(index) => read.value && setReveal({ path: pathToNode(read.value, index) })}
        />
      </div>
    </div>
  );
}

/** What a save would change. */
function Summary({ chain, body }: { chain: Chain; body: ChainBody }) {
  const after = useMemo(() => fieldsIn(body), [body]);
  if (!after) return null;
  const { name, description, maxActiveRuns, runTimeoutMs, dag } = chain;
  return (
    <DifferenceSummary difference={differenceOf({ name, description, maxActiveRuns, runTimeoutMs, dag }, after)} />
  );
}
