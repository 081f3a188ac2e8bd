/**
 * The public interface of the configuration. Client commands (src/cli) import client.ts directly instead, because the YAML and
 * JSON Schema libraries take 300 ms to load.
 */

export { settingsAsMarkdown } from "./describe.ts";
export { loadConfig, type ServerConfig } from "./load.ts";
