/** Runs of all chains, by state, opTime, trigger and person. */
import { useNavigate } from "@tanstack/react-router";
import { Page } from "../parts/page/Page.tsx";
import { useWords } from "../words/words.ts";
import { ChainLinks } from "./ChainLinks.tsx";
import { RunFilters } from "./RunFilters.tsx";
import { RunList } from "./RunList.tsx";
import { type RunsSearch, runsRoute } from "./routes.ts";
import { chainWords } from "./words.ts";

export function RunsPage() {
  const text = useWords(chainWords);
  const search = runsRoute.useSearch();
  const navigate = useNavigate();
  const set = (change: RunsSearch) =>
    void navigate({ to: "/chains/runs", search: (before) => ({ ...before, ...change }), replace: true });
  return (
    <Page title={text.runs} aside={<ChainLinks />}>
      <RunFilters search={search} onChange={set} />
      <RunList search={search} onClear={() => void navigate({ to: "/chains/runs", replace: true })} />
    </Page>
  );
}
