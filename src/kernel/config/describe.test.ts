import { describe, expect, test } from "vitest";
import { CATALOGUE } from "../../modules.ts";
import { environmentHelp, flagHelp, settingsAsMarkdown } from "./describe.ts";

const { server, client } = CATALOGUE.settings;
const settings = [...server, ...client].map((setting) => [setting.env, setting] as const);

describe("the table of settings", () => {
  test.each(settings)("describes %s in one sentence and has a valid default", (_, setting) => {
    expect(setting.description).toMatch(/^[A-Z].*\.$/);
    if (setting.default !== undefined) expect(setting.kind.parse(setting.default)).toBeDefined();
  });

  test("has no flag for a secret", () => {
    expect(settings.filter(([, { secret, flag }]) => secret && flag !== undefined)).toEqual([]);
  });
});

describe("settingsAsMarkdown", () => {
  test("is a table with one row for each setting", () => {
    const rows = settingsAsMarkdown(CATALOGUE.settings).trimEnd().split("\n");
    expect(rows).toHaveLength(settings.length + 2);
    expect(rows.every((row) => row.split(" | ").length === 6)).toBe(true);
    expect(rows.find((row) => row.includes("MILLRACE_PORT"))).toBe(
      "| `MILLRACE_PORT` | `--port` | `7400` | a whole number from 0 to 65535 | server | The port to listen on; 0 takes any free one. |",
    );
  });
});

describe("help", () => {
  test("shows each flag with its variable and default", () => {
    expect(flagHelp(server)).toContainEqual({
      usage: "--port <number>",
      description: "The port to listen on; 0 takes any free one. (MILLRACE_PORT, default 7400)",
    });
    expect(flagHelp(client).map(({ usage }) => usage)).toEqual(["--url <url>"]);
  });

  test("shows every setting of a reader either as a flag or as a variable", () => {
    for (const read of [server, client]) {
      const text = [...flagHelp(read).map(({ description }) => description), environmentHelp(read)].join("\n");
      expect(read.map(({ env }) => env).filter((env) => !text.includes(env))).toEqual([]);
    }
    expect(environmentHelp(client)).toBe("MILLRACE_KEY  The key that commands send to the server.");
  });
});
