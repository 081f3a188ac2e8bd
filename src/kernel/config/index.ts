/**
 * The door of the configuration for those that may load all of it. The commands (src/cli) go past it to the one file that
 * they need: what reads YAML and JSON Schema here takes 300 ms to load.
 */

export { settingsAsMarkdown } from "./describe.ts";
export { loadConfig, type ServerConfig } from "./load.ts";
