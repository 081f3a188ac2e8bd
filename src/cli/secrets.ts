/** `millrace secrets ...`: stores, lists and deletes the secrets that nodes of chains use by name. */
import type { Readable } from "node:stream";
import { OperatorError } from "../kernel/errors.ts";
import { SECRET_LENGTH_MAX, SECRET_LENGTH_MIN } from "../kernel/secrets/named-secrets.ts";
import { pathTo } from "./common/client.ts";
import { clientCommand, serverCommand } from "./common/client-command.ts";
import type { Family, Given } from "./common/command.ts";
import { EXIT } from "./common/exit-codes.ts";
import { printable, table, toSeconds } from "./common/output.ts";

interface Secret {
  name: string;
  createdAt: string;
  updatedAt: string;
  updatedBy: string;
}

/** A character takes up to four bytes. */
const BYTES_MAX = 4 * SECRET_LENGTH_MAX;

const set = serverCommand<Secret>({
  summary: "Store a secret, or replace it",
  details: `The value is read from standard input or from an environment variable, not from the command line, which other users can
see. A line break at its end is removed. It has ${SECRET_LENGTH_MIN} to ${SECRET_LENGTH_MAX} characters; its name consists of letters, digits and underscores. Nodes
that are already running keep the old value.`,
  args: "NAME",
  flags: [{ usage: "--env <variable>", description: "Read the value from this environment variable." }],
  examples: [
    'read -rs TOKEN && printf %s "$TOKEN" | millrace secrets set SHOP_TOKEN',
    "vault read -field=token shop | millrace secrets set SHOP_TOKEN",
    "millrace secrets set SHOP_TOKEN --env SHOP_TOKEN",
  ],
  async execute(client, given) {
    const value = await valueFrom(given);
    return client.call<Secret>({ method: "PUT", path: pathTo`api/v1/secrets/${given.text("NAME")}`, body: { value } });
  },
  show: ({ name, createdAt, updatedAt }) =>
    `${createdAt === updatedAt ? "Stored" : "Replaced"}. Write it into the cfg of a node as \${secrets.${printable(name)}}.`,
});

const list = clientCommand<{ items: Secret[] }>({
  summary: "List the names of the secrets",
  args: "",
  flags: [],
  examples: ["millrace secrets list"],
  request: () => ({ method: "GET", path: "api/v1/secrets" }),
  show: ({ items }) =>
    items.length === 0
      ? "There are no secrets."
      : table(
          ["NAME", "CREATED", "SET", "BY"],
          items.map(({ name, createdAt, updatedAt, updatedBy }) => [
            name,
            toSeconds(createdAt),
            toSeconds(updatedAt),
            updatedBy,
          ]),
        ),
});

const remove = clientCommand<Secret>({
  summary: "Delete a secret; nodes that use it then fail",
  args: "NAME",
  flags: [],
  examples: ["millrace secrets delete SHOP_TOKEN"],
  request: (given) => ({ method: "DELETE", path: pathTo`api/v1/secrets/${given.text("NAME")}` }),
  show: ({ name }) => `Deleted ${printable(name)}.`,
});

export const secrets: Family = {
  summary: "Store, list and delete the secrets that nodes of chains use by name",
  details: `A secret is stored encrypted and cannot be read back; nodes use it as \${secrets.NAME}. These commands need a
key with the scope admin in MILLRACE_KEY.`,
  commands: { set, list, delete: remove },
};

async function valueFrom(given: Given): Promise<string> {
  const variable = given.maybeText("--env");
  if (variable !== undefined) {
    const value = process.env[variable];
    if (value) return value;
    throw new OperatorError(`The environment has no ${variable}, or it is empty.`, EXIT.usage);
  }
  if (process.stdin.isTTY) {
    throw new OperatorError(
      `The value is read from standard input, such as a file: millrace secrets set ${given.text("NAME")} < FILE. ` +
        "--env takes it from the environment.",
      EXIT.usage,
    );
  }
  const text = textOf(await bytesOf(process.stdin)).replace(/\r?\n$/, "");
  if (text === "") throw new OperatorError("Standard input has no value.", EXIT.usage);
  return text;
}

async function bytesOf(input: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of input as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > BYTES_MAX) throw new OperatorError("Standard input is longer than a secret may be.", EXIT.usage);
  }
  return Buffer.concat(chunks);
}

function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new OperatorError("The value is not UTF-8. Encode binary data as base64.", EXIT.usage);
  }
}
