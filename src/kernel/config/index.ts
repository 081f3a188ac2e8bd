/** The door of the configuration: what a process may be told, read from flags, environment and file. */

export { loadClientConfig } from "./client.ts";
export { environmentHelp, flagHelp, settingsAsMarkdown } from "./describe.ts";
export { loadConfig, type ServerConfig } from "./load.ts";
export type { Flags } from "./read-settings.ts";
export { SETTINGS } from "./settings.ts";
