/** Renders settings for `--help` and for docs/operating.md, which a test keeps up to date. */
import type { Setting } from "./settings.ts";

export interface FlagHelp {
  /** `--port <number>` */
  usage: string;
  description: string;
}

export function flagHelp(settings: readonly Setting[]): FlagHelp[] {
  return settings.flatMap(({ env, flag, kind, default: text, description }) =>
    flag === undefined
      ? []
      : [
          {
            usage: `--${flag} <${kind.placeholder}>`,
            description: `${description} (${env}${text ? `, default ${text}` : ""})`,
          },
        ],
  );
}

/** The settings that have no flag, one line each. */
export function environmentHelp(settings: readonly Setting[]): string {
  const unflagged = settings.filter(({ flag }) => flag === undefined);
  const width = Math.max(...unflagged.map(({ env }) => env.length));
  return unflagged.map(({ env, description }) => `${env.padEnd(width)}  ${description}`).join("\n");
}

export function settingsAsMarkdown(settings: Readonly<Record<"server" | "client", readonly Setting[]>>): string {
  const rowsOf = (reader: "server" | "client") =>
    settings[reader].map(({ env, flag, default: text, kind, description }) => [
      `\`${env}\``,
      flag === undefined ? "" : `\`--${flag}\``,
      text ? `\`${text}\`` : "",
      kind.accepts,
      reader,
      description,
    ]);
  const lines = [
    ["Setting", "Flag", "Default", "Accepted", "Read by", "What it does"],
    Array<string>(6).fill("---"),
    ...rowsOf("server"),
    ...rowsOf("client"),
  ];
  return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}
