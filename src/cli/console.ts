/** `millrace console`: a link that signs in to the web console. */
import { clientCommand, clientFor } from "./common/client-command.ts";
import { pairs } from "./common/help.ts";
import { toSeconds } from "./common/output.ts";

export const consoleLink = clientCommand<{ code: string; expiresAt: string }>({
  summary: "Print a link that signs in to the web console",
  details: `The link signs in once, within 15 minutes, with the scopes of the key in MILLRACE_KEY, which needs the scope admin.
The address is the one that this command calls: set MILLRACE_URL to the one that your browser reaches.`,
  args: "",
  flags: [],
  examples: ["millrace console", "MILLRACE_URL=https://millrace.example millrace console"],
  request: () => ({ method: "POST", path: "api/v1/session/links" }),
  show: ({ code, expiresAt }, given) =>
    pairs([
      ["Console", `${clientFor(given).url}login#${code}`],
      ["Valid until", toSeconds(expiresAt) ?? ""],
    ]),
});
