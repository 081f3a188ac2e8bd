/** The table of settings as people read it: in `--help`, and in docs/operating.md, where a test keeps it true. */
import { type Reader, SETTINGS, type Setting, settingsFor } from "./settings.ts";

export interface FlagHelp {
  /** `--port <number>` */
  usage: string;
  description: string;
}

/** The flags of the commands that `reader` stands for. */
export function flagHelp(reader: Reader): FlagHelp[] {
  return settingsFor(reader).flatMap(([, { env, flag, kind, default: text, description }]) =>
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
export function environmentHelp(reader: Reader): string {
  const settings = settingsFor(reader).flatMap(([, setting]) => (setting.flag === undefined ? [setting] : []));
  const width = Math.max(...settings.map(({ env }) => env.length));
  return settings.map(({ env, description }) => `${env.padEnd(width)}  ${description}`).join("\n");
}

export function settingsAsMarkdown(): string {
  const rows = Object.values<Setting>(SETTINGS).map((setting) => [
    `\`${setting.env}\``,
    setting.flag === undefined ? "" : `\`--${setting.flag}\``,
    setting.default ? `\`${setting.default}\`` : "",
    setting.kind.accepts,
    setting.readBy,
    setting.description,
  ]);
  const lines = [
    ["Setting", "Flag", "Default", "Accepted", "Read by", "What it does"],
    Array<string>(6).fill("---"),
    ...rows,
  ];
  return lines.map((cells) => `| ${cells.join(" | ")} |\n`).join("");
}
