/** What all editors of the console have in common: colours from the tokens, YAML, search, and the nonce for the styles. */

import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Language } from "../../words/words.ts";
import { phrasesIn } from "./phrases.ts";

/** The tokens follow light and dark by themselves, so one theme serves both. */
const theme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--raised)", fontSize: "var(--size-small)", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--code-selection)",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--code-line)" },
  ".cm-gutters": { color: "var(--text-soft)", backgroundColor: "var(--sunken)", borderRight: "1px solid var(--line)" },
  ".cm-foldPlaceholder": { color: "var(--text-soft)", backgroundColor: "var(--hover)", borderColor: "var(--line)" },
  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--sunken)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panel.cm-search label, .cm-textfield, .cm-button": { fontSize: "inherit" },
  ".cm-textfield": { color: "var(--text)", backgroundColor: "var(--raised)", border: "1px solid var(--line-strong)" },
  ".cm-button": {
    color: "var(--text)",
    backgroundImage: "none",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line-strong)",
  },
  ".cm-searchMatch": { backgroundColor: "var(--code-match)", outline: "1px solid var(--line-strong)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--code-selection)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--code-match)" },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
    borderRadius: "var(--radius)",
    boxShadow: "var(--shadow)",
    maxWidth: "min(480px, 90vw)",
  },
  ".cm-diagnostic": { fontFamily: "var(--font)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--failed)" },
  ".cm-diagnostic-warning": { borderLeftColor: "var(--waiting)" },
  ".cm-lintRange-error": { backgroundImage: "none", borderBottom: "2px solid var(--failed)" },
  ".cm-lintRange-warning": { backgroundImage: "none", borderBottom: "2px solid var(--waiting)" },
  ".cm-collapsedLines": { color: "var(--text-soft)", background: "var(--sunken)" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--removed-ground)" },
  "&.cm-merge-b .cm-changedLine, .cm-inlineChangedLine": { backgroundColor: "var(--added-ground)" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": { background: "var(--removed-text-ground)" },
  "&.cm-merge-b .cm-changedText": { background: "var(--added-text-ground)" },
  "&.cm-merge-a .cm-changedLineGutter, .cm-deletedLineGutter": { backgroundColor: "var(--failed)" },
  "&.cm-merge-b .cm-changedLineGutter": { backgroundColor: "var(--success)" },
});

const highlight = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--code-value)" },
  { tag: [tags.comment, tags.meta, tags.punctuation, tags.separator, tags.bracket], color: "var(--text-soft)" },
]);

export function baseOf({ label, language }: { label: string; language: Language }): Extension {
  return [
    EditorView.cspNonce.of(document.querySelector<HTMLElement>("meta[property=csp-nonce]")?.nonce ?? ""),
    theme,
    syntaxHighlighting(highlight),
    yaml(),
    lineNumbers(),
    highlightSpecialChars(),
    drawSelection(),
    EditorView.lineWrapping,
    search({ top: true }),
    keymap.of(searchKeymap),
    EditorState.phrases.of(phrasesIn(language)),
    // What scrolls must be reachable by keyboard, and checkers do not count what is editable as such.
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", tabindex: "0" }),
  ];
}
