/**
 * Edits the definition of a source as YAML. The server checks each change, with problems at their line; the result of the test is
 * beside the text, with what applying it would change.
 */
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useMemo } from "react";
import { ApiError, act, call } from "../../api/client.ts";
import { refresh } from "../../api/live.ts";
import { useWhyNot } from "../../app/use-why-not.ts";
import { useAction } from "../../parts/actions/use-action.ts";
import { Button } from "../../parts/controls/Button.tsx";
import { DraftBar } from "../../parts/editor/DraftBar.tsx";
import { useDraft } from "../../parts/editor/draft.ts";
import { Editor } from "../../parts/editor/Editor.tsx";
import { readText } from "../../parts/editor/text.ts";
import { useWords } from "../../words/words.ts";
import { paths, type Source } from "../api.ts";
import { useDefinitionCheck } from "./check.ts";
import styles from "./definition.module.css";
import { definitionText, diagnosticOf, NEW_SOURCE } from "./definition.ts";
import { TestResult } from "./TestResult.tsx";
import { definitionWords } from "./words.ts";

/** Without a source, a new one is made. */
export function DefinitionEditor({ source }: { source?: Source }) {
  const text = useWords(definitionWords);
  const navigate = useNavigate();
  const { isPending, run } = useAction();
  const lacked = useWhyNot("harvest:write");
  const stored = useMemo(
    () => ({ text: source ? definitionText(source.definition) : NEW_SOURCE, version: source?.revision ?? 0 }),
    [source],
  );
  const draft = useDraft(`source.${source?.source ?? "new"}`, stored);
  const read = useMemo(() => readText(draft.text), [draft.text]);
  const baseUrl = source?.baseUrlOverride ?? null;
  const { answer: checked, isPending: isChecking, isAway, again } = useDefinitionCheck(read.value, baseUrl);
  const name = read.value?.["source"];
  // A new one must not replace what is there.
  const problem =
    typeof name !== "string" || name === ""
      ? text.noName
      : source === undefined && checked?.difference && checked.difference.outcome !== "created"
        ? text.exists(name)
        : undefined;
  const diagnostics = useMemo(
    () => [
      ...(checked?.problems ?? []).map((one) => diagnosticOf(one, "error")),
      ...(checked?.warnings ?? []).map((one) => diagnosticOf(one, "warning")),
    ],
    [checked],
  );
  const isUnchanged = source !== undefined && checked?.difference?.outcome === "unchanged";
  const why =
    lacked !== undefined
      ? lacked
      : !read.value || checked?.valid === false
        ? text.fixFirst
        : (problem ?? (isUnchanged ? text.unchanged : undefined));
  const isAppliable = why === undefined && !isChecking && !draft.isStale && !isPending;

  /** Made from the revision that the person saw: what somebody else has applied meanwhile is shown instead of replaced. */
  async function put(of: string): Promise<{ revision: number }> {
    try {
      return await act(paths.apply(of, baseUrl, draft.base), "PUT", read.value);
    } catch (error) {
      if (error instanceof ApiError && error.code === "REVISION_CONFLICT") await refresh({ kind: "source", id: of });
      throw error;
    }
  }
  const apply = () =>
    run(async () => {
      const of = String(name);
      const { revision } = await put(of);
      const { data } = await call<Source>(paths.definition(of));
      draft.saved({ text: definitionText(data.definition), version: data.revision });
      await refresh({ kind: "source" });
      if (source) return text.applied(of, revision);
      await navigate({ to: "/harvest/$source", params: { source: of } });
      return text.created(of);
    });
  function onKey(event: KeyboardEvent): void {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    if (isAppliable) apply();
  }
  return (
    // Ctrl S applies wherever the cursor is.
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions
    <div className={styles.edit} onKeyDown={onKey}>
      <DraftBar draft={draft} stored={stored} versionText={text.revision} />
      <div className={styles.bar}>
        <div className={styles.note}>
          {isAway && <p role="alert">{text.away}</p>}
          {source && (
            <p>
              {text.revision(source.revision)}. {text.lastChange(source.updatedBy)}.
            </p>
          )}
          {baseUrl !== null && <p>{text.pointsAt(baseUrl)}</p>}
          {read.hasComments && <p>{text.comments}</p>}
        </div>
        <Button icon="play" isDisabled={!read.value} onPress={again}>
          {text.test}
        </Button>
        <Button kind="primary" icon="check" isPending={isPending} isDisabled={!isAppliable} why={why} onPress={apply}>
          {text.apply}
        </Button>
      </div>
      <div className={styles.beside}>
        <div className={styles.text}>
          <Editor
            label={source ? text.definitionOf(source.source) : text.newSource}
            value={draft.text}
            onChange={draft.change}
            diagnostics={diagnostics}
            readOnly={lacked !== undefined}
          />
        </div>
        <TestResult checked={checked} isReadable={read.value !== undefined} isChecking={isChecking} problem={problem} />
      </div>
    </div>
  );
}
