/** `millrace lineage replay`: applies dead letters again. */
import { OperatorError } from "../../kernel/errors.ts";
import { type Client, pathTo } from "../common/client.ts";
import { serverCommand } from "../common/client-command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { createProgress, type Progress } from "../common/progress.ts";
import { TENANT_FLAG, tenantOf } from "./api.ts";

interface Replayed {
  applied: number;
  dead: number;
  /** The remaining dead letters of the tenant. */
  remaining?: number;
}

const PAGE = 100;
/** They are applied one by one, and each may run into a time-out. */
const PAGE_SECONDS_MAX = 600;

export const replay = serverCommand<Replayed>({
  summary: "Apply a dead letter again, or all of them",
  details: "With --all, the oldest come first. The exit code is 1 if one of them fails again.",
  args: "[EVENT]",
  flags: [{ usage: "--all", description: "All dead letters of the tenant." }, TENANT_FLAG],
  examples: ["millrace lineage replay 4711", "millrace lineage replay --all --tenant 7"],
  async execute(client, given) {
    const event = given.maybeText("EVENT");
    if ((event === undefined) !== given.isOn("--all")) {
      throw new OperatorError("Name a dead letter, or use --all.", EXIT.usage);
    }
    const tenant = await tenantOf(client, given);
    return event === undefined
      ? replayAll(client, tenant, createProgress({ isQuiet: given.isOn("--json") }))
      : replayOne(client, tenant, event);
  },
  show({ applied, dead }, given) {
    const event = given.maybeText("EVENT");
    const look = "`millrace lineage dead-letters` shows why.";
    if (event !== undefined) return dead === 0 ? `Event ${event} is applied.` : `Event ${event} failed again. ${look}`;
    if (applied + dead === 0) return "There are no dead letters.";
    return dead === 0 ? `${applied} applied.` : `${applied} applied, ${dead} failed again. ${look}`;
  },
  exitCode: ({ dead }) => (dead === 0 ? EXIT.ok : EXIT.failed),
});

async function replayOne(client: Client, tenant: string, event: string): Promise<Replayed> {
  const { state } = await client.call<{ state: string }>({
    method: "POST",
    path: pathTo`api/v1/lineage/tenants/${tenant}/dead-letters/${event}:replay`,
  });
  return state === "DEAD" ? { applied: 0, dead: 1 } : { applied: 1, dead: 0 };
}

async function replayAll(client: Client, tenant: string, progress: Progress): Promise<Replayed> {
  const done: Required<Replayed> = { applied: 0, dead: 0, remaining: 0 };
  let after: string | undefined;
  try {
    do {
      const page = await client.call<Required<Replayed> & { next: string | null }>({
        method: "POST",
        path: pathTo`api/v1/lineage/tenants/${tenant}/dead-letters:replay`,
        body: { limit: PAGE, after },
        waitSeconds: PAGE_SECONDS_MAX,
      });
      done.applied += page.applied;
      done.dead += page.dead;
      done.remaining = page.remaining;
      after = page.next ?? undefined;
      progress.update(`${done.applied} applied, ${done.dead} failed again`);
    } while (after !== undefined);
  } finally {
    progress.end();
  }
  return done;
}
