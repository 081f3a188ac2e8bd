/** The version of a run, and in one click what changed since the run before. */
import { Link } from "@tanstack/react-router";
import { useWords } from "../../words/words.ts";
import type { Run } from "../api.ts";
import { definitionWords } from "../editor/words.ts";
import { chainWords } from "../words.ts";

export function VersionLink({ run: { chainId, chainVersion, previous } }: { run: Run }) {
  const text = useWords(definitionWords);
  const { versionOf } = useWords(chainWords);
  if (chainId === null || chainVersion === null) return null;
  const before = previous?.chainVersion ?? undefined;
  const isSame = before === chainVersion;
  return (
    <span>
      <Link
        to="/chains/$chainId"
        params={{ chainId }}
        search={{ tab: "versions", version: chainVersion, ...(before !== undefined && !isSame && { against: before }) }}
      >
        {versionOf(chainVersion)}
        {before !== undefined && !isSame && `, ${text.changedSince(before)}`}
      </Link>
      {isSame && `, ${text.sameAsBefore}`}
    </span>
  );
}
