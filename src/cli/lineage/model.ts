/** `millrace lineage model`: the models that embed and summarise a tenant's assets. */
import { OperatorError } from "../../kernel/errors.ts";
import { parseJsonFlag } from "../chain/start.ts";
import { pathTo, type Request } from "../common/client.ts";
import { clientCommand } from "../common/client-command.ts";
import type { Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";
import { printable, table } from "../common/output.ts";

interface Service {
  provider: string;
  model: string;
  dimension?: number;
  endpoint?: string;
  credentialRef?: string;
}

interface Chosen {
  model: { embedding?: Service; summary?: Service } | null;
}

const BUILTIN = {
  embedding: { provider: "builtin", model: "hash-v1" },
  summary: { provider: "builtin", model: "rules-v1" },
};
const SERVED = JSON.stringify({
  embedding: {
    provider: "openai",
    model: "text-embedding-3-small",
    dimension: 1536,
    endpoint: "https://api.openai.com/v1",
    credentialRef: "env:OPENAI_API_KEY",
  },
});

export const model = clientCommand<Chosen>({
  summary: "Show or set the models that embed and summarise a tenant's assets",
  details: `Without a flag, shows the models. Without models nothing is computed, and no text is sent anywhere. The built-in models
need no service. Results of another model are computed again. Setting models needs the scope admin.`,
  args: "ID",
  flags: [
    { usage: "--builtin", description: "Use the built-in models." },
    { usage: "--set <json>", description: "Use these: an object with `embedding`, `summary` or both." },
    { usage: "--none", description: "Use no models. Existing results are kept." },
  ],
  examples: [
    "millrace lineage model 7",
    "millrace lineage model 7 --builtin",
    `millrace lineage model 7 --set '${SERVED}'`,
  ],
  request: (given) => ({ path: pathTo`api/v1/lineage/tenants/${given.text("ID")}/model`, ...choiceOf(given) }),
  show({ model: chosen }, given) {
    const id = printable(given.text("ID"));
    if (chosen === null) return `Tenant ${id} has no model: nothing is computed for its assets.`;
    const services = Object.entries(chosen);
    return table(
      ["FOR", "PROVIDER", "MODEL", "DIMENSION", "ENDPOINT", "CREDENTIAL"],
      services.map(([what, { provider, model: name, dimension, endpoint, credentialRef }]) => [
        what,
        provider,
        name,
        dimension,
        endpoint,
        credentialRef,
      ]),
    );
  },
});

function choiceOf(given: Given): Pick<Request, "method" | "body"> {
  const json = given.maybeText("--set");
  const choices = [json !== undefined, given.isOn("--builtin"), given.isOn("--none")].filter((isGiven) => isGiven);
  if (choices.length > 1) throw new OperatorError("Use only one of --builtin, --set and --none.", EXIT.usage);
  if (given.isOn("--none")) return { method: "DELETE" };
  if (given.isOn("--builtin")) return { method: "PUT", body: BUILTIN };
  return json === undefined ? { method: "GET" } : { method: "PUT", body: parseJsonFlag("--set", json) as object };
}
