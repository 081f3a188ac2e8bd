/** The commands of `millrace lineage` about tenants: who they are, their limits, and their way to READY. */
import { OperatorError } from "../../kernel/errors.ts";
import { pathTo } from "../common/client.ts";
import { clientCommand, talkingCommand } from "../common/client-command.ts";
import type { Family, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, table, toSeconds } from "../common/output.ts";
import { listing, PAGE_FLAGS, type Page, pageOf } from "../common/paging.ts";
import { createProgress } from "../common/progress.ts";
import type { Tenant } from "./api.ts";

export const tenants = clientCommand<Page<Tenant>>({
  summary: "List tenants",
  args: "",
  flags: [
    { usage: "--q <text>", description: "Tenants with this in their codes or names." },
    { usage: "--state <state>", description: "Those that are NEW, SYNCING or READY." },
    ...PAGE_FLAGS,
  ],
  examples: ["millrace lineage tenants", "millrace lineage tenants --state SYNCING"],
  request: (given) => ({
    method: "GET",
    path: "api/v1/lineage/tenants",
    query: { q: given.maybeText("--q"), state: given.maybeText("--state")?.toUpperCase(), ...pageOf(given) },
  }),
  show: (page) =>
    listing(page, "tenant", () =>
      table(
        ["ID", "CODE", "NAME", "STATE", "CUTOVER", "EVENTS A MINUTE", "BYTES AN EVENT", "CREATED"],
        page.items.map((one) => [
          one.id,
          one.code,
          one.name,
          one.state,
          toSeconds(one.cutoverTime),
          one.rateLimitPerMinute ?? undefined,
          one.bodyLimitBytes ?? undefined,
          toSeconds(one.createdAt),
        ]),
      ),
    ),
});

const create = clientCommand<Tenant>({
  summary: "Make a tenant",
  details: `A new tenant keeps its events until it is READY: first comes a full sync of what there is
(\`millrace lineage sync-start\`), or \`millrace lineage ready\` if there is nothing to sync. With --ready its events are applied
from the first one on. The id is the one that the events have.`,
  args: "ID",
  flags: [
    { usage: "--code <text>", description: "A short name, which no other tenant has.", required: true },
    { usage: "--name <text>", description: "Its name for people.", required: true },
    { usage: "--ready", description: "Without a full sync: apply its events at once." },
    { usage: "--rate-limit <number>", description: "Events a minute that each process takes of it." },
    { usage: "--body-limit <bytes>", description: "What an event of it may measure." },
  ],
  examples: ["millrace lineage tenant create 7 --code acme --name 'Acme Inc.' --ready"],
  request: (given) => ({
    method: "POST",
    path: "api/v1/lineage/tenants",
    body: {
      id: given.number("ID"),
      code: given.text("--code"),
      name: given.text("--name"),
      state: given.isOn("--ready") ? "READY" : "NEW",
      rateLimitPerMinute: given.maybeNumber("--rate-limit"),
      bodyLimitBytes: given.maybeNumber("--body-limit"),
    },
  }),
  show: (made) => `${stateInWords(made)}

What sends events as this tenant needs a key:
  millrace keys create NAME --scopes lineage:write --tenant ${made.id} --source COMPUTE_ENGINE`,
});

const set = clientCommand<Tenant>({
  summary: "Change a tenant's names or limits",
  args: "ID",
  flags: [
    { usage: "--code <text>", description: "A short name, which no other tenant has." },
    { usage: "--name <text>", description: "Its name for people." },
    { usage: "--rate-limit <number>", description: "Events a minute that each process takes of it, or `none`." },
    {
      usage: "--body-limit <bytes>",
      description: "What an event of it may measure, or `none` for the server's limit.",
    },
  ],
  examples: ["millrace lineage tenant set 7 --rate-limit 6000", "millrace lineage tenant set 7 --rate-limit none"],
  request(given) {
    const body = {
      code: given.maybeText("--code"),
      name: given.maybeText("--name"),
      rateLimitPerMinute: limitOf(given, "--rate-limit"),
      bodyLimitBytes: limitOf(given, "--body-limit"),
    };
    if (Object.values(body).every((value) => value === undefined)) {
      throw new OperatorError("Say what to change: --code, --name, --rate-limit or --body-limit.", EXIT.usage);
    }
    return { method: "PATCH", path: pathTo`api/v1/lineage/tenants/${given.text("ID")}`, body };
  },
  show: (changed) => {
    const { rateLimitPerMinute: rate, bodyLimitBytes: bytes } = changed;
    const limits = [
      rate === null ? "takes any number of events a minute" : `takes ${rate} events a minute`,
      bytes === null ? "of any size that the server takes" : `of ${bytes} bytes at most`,
    ].join(", ");
    return `${nameOf(changed)} ${limits}.`;
  },
});

function limitOf(given: Given, flag: string): number | null | undefined {
  return given.maybeText(flag) === "none" ? null : given.maybeNumber(flag);
}

export const tenant: Family = {
  summary: "Make a tenant, or change one",
  details: "These commands need a key with the scope admin in MILLRACE_KEY.",
  commands: { create, set },
};

const syncStart = clientCommand<Tenant>({
  summary: "Begin a full sync of a tenant",
  details: `From now on the tenant's events wait. Send what there is with \`millrace lineage send --baseline\`, then say
\`millrace lineage ready\`: events from the cutover on are applied, older ones are left out, since the full sync has them.`,
  args: "ID",
  flags: [{ usage: "--cutover <time>", description: "What the full sync has everything before (default: now)." }],
  examples: ["millrace lineage sync-start 7", "millrace lineage sync-start 7 --cutover 2026-01-01T00:00:00Z"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/lineage/tenants/${given.text("ID")}:sync-start`,
    body: { cutoverTime: given.maybeText("--cutover") },
  }),
  show: (syncing) => `${nameOf(syncing)} is SYNCING, with the cutover at ${toSeconds(syncing.cutoverTime)}.

Send the full sync, then let the events in that wait meanwhile:
  millrace lineage send FILE... --baseline ${syncing.id}
  millrace lineage ready ${syncing.id}`,
});

interface Ready extends Tenant {
  applied: number;
  skipped: number;
  dead: number;
}

/** A call ends after less than this even if not all that has waited is applied by then. */
const READY_SECONDS_MAX = 60;

const ready = talkingCommand<Ready>({
  summary: "End a tenant's full sync: apply what has waited, and every event from now on",
  details: "Also for a tenant that needs no full sync. Nothing happens to one that is READY already.",
  args: "ID",
  flags: [],
  examples: ["millrace lineage ready 7"],
  async talk(client, given) {
    const path = pathTo`api/v1/lineage/tenants/${given.text("ID")}:ready`;
    const progress = createProgress({ isQuiet: given.isOn("--json") });
    const done = { applied: 0, skipped: 0, dead: 0 };
    try {
      for (;;) {
        const reply = await client.call<Ready>({ method: "POST", path, waitSeconds: READY_SECONDS_MAX });
        done.applied += reply.applied;
        done.skipped += reply.skipped;
        done.dead += reply.dead;
        if (reply.state === "READY") return { ...reply, ...done };
        progress.tell(`${done.applied + done.skipped + done.dead} of the events that have waited are done`);
      }
    } finally {
      progress.end();
    }
  },
  show({ applied, skipped, dead, ...now }) {
    const name = `${nameOf(now)} is READY.`;
    if (applied + skipped + dead === 0) return `${name} No event had waited.`;
    const parts = [
      `${applied} applied`,
      skipped > 0 ? `${skipped} from before the cutover left out` : "",
      dead > 0 ? `${dead} could not be applied (\`millrace lineage dead-letters --tenant ${now.id}\`)` : "",
    ];
    return `${name} Events that had waited: ${parts.filter((part) => part !== "").join(", ")}.`;
  },
});

export const readiness = { "sync-start": syncStart, ready };

const nameOf = ({ id, code }: Tenant) => `Tenant ${id} (${printable(code)})`;

function stateInWords(one: Tenant): string {
  if (one.state === "READY") return `${nameOf(one)} is READY: its events are applied as they come.`;
  return `${nameOf(one)} is ${one.state}: its events are kept, and wait for \`millrace lineage ready ${one.id}\`.`;
}
