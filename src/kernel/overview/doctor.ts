/**
 * The doctor's checks of what needs attention: the entries of the overview, without those that a module has a check for, and what has
 * failed where the entries name what is missing because of it.
 */
import type { Db } from "../data/db.ts";
import type { DoctorCheck } from "../doctor.ts";
import { counted } from "../text/sentences.ts";
import { NEEDED_DAYS, type Need, type OverviewPart } from "./part.ts";

const CHECKS = [
  {
    state: "failed",
    name: "failures",
    none: `Nothing has failed within ${NEEDED_DAYS} days that was not repeated.`,
    some: `Failed within ${NEEDED_DAYS} days, and not repeated`,
    advice: "Fix the cause and retry; GET /api/v1/overview, and the first page of the console, list all.",
  },
  {
    state: "stuck",
    name: "stuck work",
    none: "No work is stuck.",
    some: "Stuck",
    advice: "Check the workers named there; GET /api/v1/overview, and the first page of the console, list all.",
  },
  {
    state: "late",
    name: "late tables",
    none: "No table is later than its deadline.",
    some: "Later than their deadline",
    advice: "Ask whoever loads them; `millrace kpi why MODEL OPTIME` tells what a model waits for.",
  },
] as const;

const NAMED_MAX = 5;
const REASON_LENGTH_MAX = 300;

export function needChecks(parts: readonly OverviewPart[]): DoctorCheck[] {
  return CHECKS.map(({ state, name, none, some, advice }) => ({
    name,
    async look(db) {
      const failures = state === "failed" ? await failuresOf(db, parts) : [];
      const own = (await needsOf(db, parts)).filter((need) => need.state === state);
      const needs = newestFirst([...own, ...failures.flatMap((part) => part.needs)]);
      const [newest] = needs;
      if (!newest) return { verdict: "ok", found: none };
      const named = needs.slice(0, NAMED_MAX).map(({ about: { kind }, title, count }) => `${kind} ${title} (${count})`);
      const more = needs.length > NAMED_MAX ? ` and ${counted(needs.length - NAMED_MAX, "other")}` : "";
      const reason = `${titleOf(newest)}: ${newest.reason}`.slice(0, REASON_LENGTH_MAX);
      const found = `${some}: ${named.join(", ")}${more}. The newest is ${reason}`;
      const commands = failures.map(
        ({ command, needs: [{ about }] }) => ` \`${command}\` lists each failed ${about.kind}.`,
      );
      return { verdict: "warning", found, advice: `${advice}${commands.join("")}`, isListed: true };
    },
  }));
}

function titleOf({ title, about: { opTime } }: Need): string {
  return opTime === undefined ? title : `${title} ${opTime}`;
}

interface Failures {
  command: string;
  needs: [Need, ...Need[]];
}

/** Of the parts whose needs name something else. */
async function failuresOf(db: Db, parts: readonly OverviewPart[]): Promise<Failures[]> {
  const all = await Promise.all(
    parts.map(async ({ failures }): Promise<Failures[]> => {
      const [first, ...others] = failures ? await failures.of(db) : [];
      return failures && first ? [{ command: failures.command, needs: [first, ...others] }] : [];
    }),
  );
  return all.flat();
}

function newestFirst(needs: readonly Need[]): Need[] {
  return needs.toSorted((a, b) => (b.at?.getTime() ?? 0) - (a.at?.getTime() ?? 0));
}

/** Those that no other check names. */
async function needsOf(db: Db, parts: readonly OverviewPart[]): Promise<Need[]> {
  const all = await Promise.all(
    parts.map(async (part) => {
      const { needs } = await part.now(db, { tenantId: null });
      return needs.filter(({ about: { kind } }) => !part.checkedKinds?.includes(kind));
    }),
  );
  return all.flat();
}
