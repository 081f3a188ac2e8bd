/** The choice of an attempt of a node; nothing if there is only one. */
import { Select } from "../../parts/controls/Select.tsx";
import { useWords } from "../../words/words.ts";
import type { RunNode } from "../api.ts";
import { runWords } from "../run/words.ts";
import { chainWords } from "../words.ts";

const SHOWN_MAX = 100;

interface AttemptSelectProps {
  node: RunNode;
  attempt: number;
  onChange(change: { attempt: number | undefined; line: undefined }): void;
}

export function AttemptSelect({ node, attempt, onChange }: AttemptSelectProps) {
  const text = useWords(runWords);
  const chain = useWords(chainWords);
  if (node.attempt < 2) return null;
  const newest = Array.from({ length: Math.min(node.attempt, SHOWN_MAX) }, (_, index) => node.attempt - index);
  if (!newest.includes(attempt)) newest.push(attempt);
  return (
    <Select
      label={chain.attempt}
      isLabelHidden
      value={String(attempt)}
      options={newest.map((no) => [String(no), text.attemptOf(no)] as const)}
      onChange={(next) =>
        onChange({ attempt: next === String(node.attempt) ? undefined : Number(next), line: undefined })
      }
    />
  );
}

/** The one in the address, or the last one. */
export function attemptOf({ attempt }: RunNode, asked: number | undefined): number {
  return asked !== undefined && asked <= attempt ? asked : Math.max(attempt, 1);
}
