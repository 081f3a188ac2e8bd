/** The CodeMirror editor. `Editor` loads it lazily with its library. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Annotation, Compartment, EditorState } from "@codemirror/state";
import { EditorView, highlightActiveLine, highlightActiveLineGutter, keymap } from "@codemirror/view";
import { useEffect, useEffectEvent, useMemo, useRef, useState } from "react";
import { useLanguage } from "../../words/words.ts";
import { baseOf } from "./base.ts";
import styles from "./Editor.module.css";
import type { Diagnostic, Place } from "./text.ts";

export interface Mark extends Diagnostic {
  place: Place;
}

export interface CodeViewProps {
  label: string;
  /** The id of the text that says how to leave the editor. */
  describedBy: string;
  value: string;
  onChange?: ((text: string) => void) | undefined;
  readOnly: boolean;
  marks: readonly Mark[];
  /** The cursor moves there, each time that it is another object. */
  cursor: { offset: number } | undefined;
}

/** Marks a change that came from the page: the page knows it already. */
const fromPage = Annotation.define<boolean>();

export default function CodeView(props: CodeViewProps) {
  const { label, describedBy, value, onChange, readOnly, marks, cursor } = props;
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const language = useLanguage();
  const [frame] = useState(() => new Compartment());
  const framed = useMemo(
    () => [
      baseOf({ label, language }),
      EditorState.readOnly.of(readOnly),
      EditorView.contentAttributes.of({ "aria-describedby": describedBy }),
    ],
    [label, language, readOnly, describedBy],
  );
  const changed = useEffectEvent((text: string) => onChange?.(text));

  const create = useEffectEvent((parent: HTMLElement) => {
    const made = new EditorView({
      parent,
      state: EditorState.create({
        doc: value,
        extensions: [
          frame.of(framed),
          history(),
          foldGutter(),
          lintGutter(),
          indentOnInput(),
          bracketMatching(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          EditorState.tabSize.of(2),
          // Tab indents, so the library lets Escape, then Tab, leave the editor.
          keymap.of([...defaultKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap, indentWithTab]),
          EditorView.domEventHandlers({ beforeinput: typeOver }),
          EditorView.updateListener.of(({ docChanged, transactions, state }) => {
            if (docChanged && !transactions.every((one) => one.annotation(fromPage))) changed(state.doc.toString());
          }),
        ],
      }),
    });
    return made;
  });
  useEffect(() => {
    if (!host.current) return;
    const made = create(host.current);
    view.current = made;
    return () => made.destroy();
  }, []);

  useEffect(() => view.current?.dispatch({ effects: frame.reconfigure(framed) }), [frame, framed]);
  useEffect(() => {
    const state = view.current?.state;
    if (!state || state.doc.toString() === value) return;
    view.current?.dispatch({ changes: changeTo(state.doc.toString(), value), annotations: fromPage.of(true) });
  }, [value]);
  useEffect(() => {
    const state = view.current?.state;
    if (!state) return;
    // The diagnostics may belong to an older text.
    const within = (offset: number) => Math.min(offset, state.doc.length);
    view.current?.dispatch(
      setDiagnostics(
        state,
        marks.map(({ place, message, severity }) => ({
          from: within(place.from),
          to: within(place.to),
          severity,
          message,
        })),
      ),
    );
  }, [marks]);
  useEffect(() => {
    if (!cursor || !view.current) return;
    const anchor = Math.min(cursor.offset, view.current.state.doc.length);
    view.current.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    view.current.focus();
  }, [cursor]);
  return <div ref={host} className={styles.code} />;
}

/**
 * When typing over a selection, the browser writes the colours of the replaced text into a style attribute, which violates the
 * content security policy. So the selection is replaced here.
 */
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { data, inputType } = event;
  const isTyped = inputType === "insertText" && data !== null && !view.state.readOnly;
  if (!isTyped || view.composing || view.state.selection.main.empty) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

/** Only what differs, so that the cursor keeps its place. */
function changeTo(before: string, after: string): { from: number; to: number; insert: string } {
  let start = 0;
  const most = Math.min(before.length, after.length);
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}
