/** The commands of `millrace lineage` for tenants: list, create, limits, full sync. */

import { OperatorError } from "../../kernel/errors.ts";
import { counted } from "../../kernel/text/sentences.ts";
import { pathTo } from "../common/client.ts";
import { clientCommand, serverCommand } from "../common/client-command.ts";
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
    { usage: "--q <text>", description: "Tenants whose codes or names contain this." },
    { usage: "--state <state>", description: "Only NEW, SYNCING or READY." },
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
        ["ID", "CODE", "NAME", "STATE", "CUTOVER", "EVENTS PER MINUTE", "BYTES PER EVENT", "CREATED"],
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
  summary: "Create a tenant",
  details: `Events of a new tenant are stored until it is READY: after a full sync (\`millrace lineage sync-start\`), or after
\`millrace lineage ready\` if there is nothing to sync. With --ready its events are applied at once. The id is the tenant id in the
events.`,
  args: "ID",
  flags: [
    { usage: "--code <text>", description: "A unique short name.", required: true },
    { usage: "--name <text>", description: "Its display name.", required: true },
    { usage: "--ready", description: "Apply its events at once, without a full sync." },
    { usage: "--rate-limit <number>", description: "Events per minute that each process accepts." },
    { usage: "--body-limit <bytes>", description: "The largest event." },
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

Clients that send its events need a key:
  millrace keys create NAME --scopes lineage:write --tenant ${made.id} --source COMPUTE_ENGINE`,
});

const set = clientCommand<Tenant>({
  summary: "Change a tenant's names or limits",
  args: "ID",
  flags: [
    { usage: "--code <text>", description: "A unique short name." },
    { usage: "--name <text>", description: "Its display name." },
    { usage: "--rate-limit <number>", description: "Events per minute that each process accepts, or `none`." },
    {
      usage: "--body-limit <bytes>",
      description: "The largest event, or `none` for the server's limit.",
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
      throw new OperatorError("Nothing to change: use --code, --name, --rate-limit or --body-limit.", EXIT.usage);
    }
    return { method: "PATCH", path: pathTo`api/v1/lineage/tenants/${given.text("ID")}`, body };
  },
  show: (changed) => {
    const { rateLimitPerMinute: rate, bodyLimitBytes: bytes } = changed;
    const limits = [
      rate === null ? "accepts any number of events per minute" : `accepts ${counted(rate, "event")} per minute`,
      bytes === null ? "up to the size limit of the server" : `of at most ${counted(bytes, "byte")}`,
    ].join(", ");
    return `${nameOf(changed)} ${limits}.`;
  },
});

function limitOf(given: Given, flag: string): number | null | undefined {
  return given.maybeText(flag) === "none" ? null : given.maybeNumber(flag);
}

export const tenant: Family = {
  summary: "Create or change a tenant",
  details: "These commands need a key with the scope admin in MILLRACE_KEY.",
  commands: { create, set },
};

const syncStart = clientCommand<Tenant>({
  summary: "Start the full sync of a tenant",
  details: `The tenant's events are then stored but not applied. Send the full sync with \`millrace lineage send --baseline\`, then run
\`millrace lineage ready\`: stored events from the cutover on are applied, older ones are skipped, since the full sync has them.`,
  args: "ID",
  flags: [{ usage: "--cutover <time>", description: "The time up to which the full sync is complete (default: now)." }],
  examples: ["millrace lineage sync-start 7", "millrace lineage sync-start 7 --cutover 2026-01-01T00:00:00Z"],
  request: (given) => ({
    method: "POST",
    path: pathTo`api/v1/lineage/tenants/${given.text("ID")}:sync-start`,
    body: { cutoverTime: given.maybeText("--cutover") },
  }),
  show: (syncing) => `${nameOf(syncing)} is SYNCING, with the cutover at ${toSeconds(syncing.cutoverTime)}.

Send the full sync, then apply the stored events:
  millrace lineage send FILE... --baseline ${syncing.id}
  millrace lineage ready ${syncing.id}`,
});

interface Ready extends Tenant {
  applied: number;
  skipped: number;
  dead: number;
}

/** A call returns within this time, even if stored events remain. */
const READY_SECONDS_MAX = 60;

const ready = serverCommand<Ready>({
  summary: "End a tenant's full sync: apply stored events, and all later ones",
  details: "Also for a tenant that needs no full sync. Does nothing if the tenant is already READY.",
  args: "ID",
  flags: [],
  examples: ["millrace lineage ready 7"],
  async execute(client, given) {
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
        progress.update(`${counted(done.applied + done.skipped + done.dead, "stored event")} processed`);
      }
    } finally {
      progress.end();
    }
  },
  show({ applied, skipped, dead, ...now }) {
    const name = `${nameOf(now)} is READY.`;
    if (applied + skipped + dead === 0) return `${name} There were no stored events.`;
    const parts = [
      `${applied} applied`,
      skipped > 0 ? `${skipped} from before the cutover skipped` : "",
      dead > 0 ? `${dead} could not be applied (\`millrace lineage dead-letters --tenant ${now.id}\`)` : "",
    ];
    return `${name} Stored events: ${parts.filter((part) => part !== "").join(", ")}.`;
  },
});

export const readiness = { "sync-start": syncStart, ready };

const nameOf = ({ id, code }: Tenant) => `Tenant ${id} (${printable(code)})`;

function stateInWords(one: Tenant): string {
  if (one.state === "READY") return `${nameOf(one)} is READY: its events are applied at once.`;
  return `${nameOf(one)} is ${one.state}: its events are stored until \`millrace lineage ready ${one.id}\`.`;
}
