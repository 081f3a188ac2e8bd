/** The harvest of the scenario: the shipped definitions, pointed at the simulators, and a plan of each source with its progress. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { hasColours } from "../cli/common/output.ts";
import { bar, line } from "../cli/common/spans.ts";
import type { PlanDetail } from "../cli/harvest/api.ts";
import { parseDefinitionFile } from "../cli/harvest/file.ts";
import { createProgressMeter, type PlanProgress } from "../cli/harvest/progress.ts";
import { PACKAGE_ROOT } from "../kernel/package-root.ts";
import { counted } from "../kernel/text/sentences.ts";
import type { Api } from "./api.ts";
import { newestOf, windowOf } from "./days.ts";
import type { DemoOutput } from "./output.ts";
import { SOURCE_NAMES, SOURCES, type SourceName, type Sources } from "./sources.ts";

interface HarvestContext {
  api: Api;
  sources: Sources;
  output: DemoOutput;
  printLine(line: string): void;
}

/** The ids of the plans. */
export type Plans = Readonly<Record<SourceName, string>>;

/** How often a log gets a line of a source that has made progress; its first change is printed at once. */
const LINES_GAP_MS = 5_000;
const NAME_WIDTH = 10;

export async function defineSources({ api, sources, printLine }: HarvestContext): Promise<void> {
  for (const source of SOURCE_NAMES) {
    const file = join(PACKAGE_ROOT, `sources/${source}.yaml`);
    const { content } = parseDefinitionFile(file, await readFile(file, "utf8"));
    await api.put(`api/v1/harvest/registry/sources/${source}`, content, { baseUrl: sources.get(source).baseUrl });
  }
  printLine("defined: sources crossref, pubmed and arxiv, each with a simulator of its API");
}

/** Harvests the days from all sources at once, until all have landed. */
export async function harvestAll(context: HarvestContext, days: readonly string[]): Promise<Plans> {
  const { output, printLine } = context;
  printLine(
    `harvesting ${counted(days.length, "day")}, ${days[0]} to ${newestOf(days)}, at the rates that the real services allow`,
  );
  const view = createView(output, printLine);
  try {
    const planned = SOURCE_NAMES.map(async (source) => {
      const plan = await harvest(context, source, days, (state) => view.update(source, state));
      view.end(source, plan);
      return [source, plan.planId] as const;
    });
    return Object.fromEntries(await Promise.all(planned)) as Plans;
  } finally {
    output.draw?.([]);
  }
}

/** Harvests the days from one source. */
export async function harvest(
  { api }: Pick<HarvestContext, "api">,
  source: SourceName,
  days: readonly string[],
  onPlan: (plan: PlanDetail) => void = () => undefined,
): Promise<PlanDetail> {
  const { planId } = await api.post<{ planId: string }>("api/v1/harvest/plans", { source, window: windowOf(days) });
  return api.harvested(planId, onPlan);
}

/** One line for each source that is open, redrawn; in a log, a line now and then. */
function createView(output: DemoOutput, printLine: (line: string) => void) {
  const meters = new Map(SOURCE_NAMES.map((source) => [source, createProgressMeter()]));
  const open = new Map<SourceName, { plan: PlanDetail; progress: PlanProgress }>();
  const lines = new Map<SourceName, { text: string; at: number }>();

  function redraw(draw: NonNullable<DemoOutput["draw"]>): void {
    const width = output.columns();
    const shown = SOURCE_NAMES.flatMap((source) => {
      const state = open.get(source);
      if (!state) return [];
      const filled = bar(state.progress.share, { width, isFailed: state.plan.reconciliation.gaps > 0 });
      return [
        line([[source.padEnd(NAME_WIDTH), "bold"], ...filled, [`  ${countsOf(state.plan)}`]], width, hasColours()),
      ];
    });
    draw(shown);
  }
  return {
    update(source: SourceName, plan: PlanDetail): void {
      const progress = meters.get(source)?.(plan, performance.now());
      if (!progress) return;
      open.set(source, { plan, progress });
      if (output.draw) return redraw(output.draw);
      const text = `${source}: ${countsOf(plan)}`;
      const last = lines.get(source) ?? { text, at: Number.NEGATIVE_INFINITY };
      const isDue = text !== last.text && performance.now() - last.at >= LINES_GAP_MS;
      if (isDue && plan.endedAt === null) printLine(text);
      lines.set(source, isDue ? { text, at: performance.now() } : last);
    },
    end(source: SourceName, plan: PlanDetail): void {
      open.delete(source);
      if (output.draw) redraw(output.draw);
      printLine(`${source}: ${countsOf(plan)}, landed in ${SOURCES[source].table}`);
    },
  };
}

/** `5 of 7 days, 480 records`. */
function countsOf({ slices, reconciliation }: PlanDetail): string {
  const all = Object.values(slices).reduce((sum, count) => sum + count, 0);
  return `${slices.COMPLETE ?? 0} of ${counted(all, "day")}, ${counted(reconciliation.received, "record")}`;
}
