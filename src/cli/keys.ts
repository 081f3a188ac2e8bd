/** `millrace keys ...`: creates, lists and revokes API keys. */
import { OperatorError } from "../kernel/errors.ts";
import { didYouMean } from "../kernel/nearest.ts";
import { CATALOGUE } from "../modules.ts";
import { pathTo } from "./common/client.ts";
import { clientCommand } from "./common/client-command.ts";
import type { Family } from "./common/command.ts";
import { EXIT } from "./common/exit-codes.ts";
import { pairs } from "./common/help.ts";
import { printable, table, toSeconds } from "./common/output.ts";

interface Key {
  id: string;
  name: string;
  hint: string;
  scopes: string[];
  tenantId?: number;
  source?: string;
  rateLimitPerMinute?: number;
  createdAt: string;
  createdBy: string;
  usedAt?: string;
  revokedAt?: string;
}

const SCOPES = Object.keys(CATALOGUE.scopes);

const create = clientCommand<Key & { key: string }>({
  summary: "Create a key",
  details: `The key is shown only once. A key with a tenant has access to the lineage of that tenant only.

Scopes: ${SCOPES.slice(0, 8).join(", ")},
${SCOPES.slice(8).join(", ")}.`,
  args: "NAME",
  flags: [
    { usage: "--scopes <list>", description: "What the key may do, separated by commas.", required: true },
    { usage: "--tenant <number>", description: "Bind the key to this tenant." },
    {
      usage: "--source <source>",
      description: `Bind the key to this kind of source: ${CATALOGUE.keySources.join(" or ")}.`,
    },
    { usage: "--rate-limit <number>", description: "Requests per minute, instead of the server's limit." },
  ],
  examples: [
    "millrace keys create loader --scopes pipeline:read,pipeline:write",
    "millrace keys create spark --scopes lineage:write --tenant 7 --source COMPUTE_ENGINE --json",
  ],
  request: (given) => ({
    method: "POST",
    path: "api/v1/keys",
    body: {
      name: given.text("NAME"),
      scopes: scopesFrom(given.text("--scopes")),
      tenantId: given.maybeNumber("--tenant"),
      source: given.maybeText("--source"),
      rateLimitPerMinute: given.maybeNumber("--rate-limit"),
    },
  }),
  show: ({ id, name, scopes, key }) =>
    `${pairs([
      ["Key", key],
      ["Id", id],
      ["Name", printable(name)],
      ["Scopes", scopes.join(", ")],
    ])}\n\nKeep the key in a safe place: it is shown only this once.`,
});

const list = clientCommand<{ items: Key[] }>({
  summary: "List the keys, newest first",
  args: "",
  flags: [],
  examples: ["millrace keys list", "millrace keys list --json | jq -r '.items[] | select(.revokedAt == null) | .name'"],
  request: () => ({ method: "GET", path: "api/v1/keys" }),
  show: ({ items }) =>
    items.length === 0
      ? "There are no keys."
      : table(
          ["ID", "NAME", "KEY", "SCOPES", "TENANT", "SOURCE", "PER MINUTE", "CREATED", "BY", "LAST USED", "REVOKED"],
          items.map((key) => [
            key.id,
            key.name,
            `${key.hint}...`,
            key.scopes.join(","),
            key.tenantId,
            key.source,
            key.rateLimitPerMinute,
            toSeconds(key.createdAt),
            key.createdBy,
            toSeconds(key.usedAt),
            toSeconds(key.revokedAt),
          ]),
        ),
});

const revoke = clientCommand<Key>({
  summary: "Revoke a key; it stops working at once",
  args: "ID",
  flags: [],
  examples: ["millrace keys revoke 0196c1f2-7d1e-7c3a-9a55-0f6c3a1b2c4d"],
  request: (given) => ({ method: "DELETE", path: pathTo`api/v1/keys/${given.text("ID")}` }),
  show: ({ name, id }) => `Revoked ${printable(name)} (${id}).`,
});

export const keys: Family = {
  summary: "Create, list and revoke API keys",
  details: `These commands need a key with the scope admin in MILLRACE_KEY; the server's first start prints one.`,
  commands: { create, list, revoke },
};

function scopesFrom(text: string): string[] {
  const scopes = text
    .split(",")
    .map((scope) => scope.trim())
    .filter((scope) => scope !== "");
  const unknown = scopes.find((scope) => !SCOPES.includes(scope));
  if (unknown === undefined) return scopes;
  const hint = didYouMean(unknown, SCOPES) || ` Scopes are ${SCOPES.join(", ")}.`;
  throw new OperatorError(`There is no scope \`${unknown}\`.${hint}`, EXIT.usage);
}
