/**
 * The server of the demo: a Millrace in this process, with an embedded Postgres in a temporary folder that is removed at the
 * end. It ignores the user's settings, above all DATABASE_URL.
 */
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configure, type Millrace, start } from "../app.ts";
import { removeFolder, startCleanupProcess } from "./cleanup-process.ts";
import { ARRIVING_FILES } from "./definitions.ts";
import { OWN_TENANT } from "./lineage.ts";

export interface DemoServer {
  url: string;
  /** An admin key. */
  key: string;
  /** The folder of the lake that has a folder for each table. */
  tablesDir: string;
  /** Stops all processes and removes the folder. */
  close(): Promise<void>;
}

export interface DemoServerOptions {
  printLine: (line: string) => void;
  logLevel: string;
  /** `host:port` of the sources, which listen on this machine. */
  privateHosts: readonly string[];
}

export async function openDemoServer({ printLine, logLevel, privateHosts }: DemoServerOptions): Promise<DemoServer> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-demo-"));
  const cleanup = startCleanupProcess(folder);
  let millrace: Millrace | undefined;

  async function close(): Promise<void> {
    await millrace?.stop();
    await removeFolder(folder);
    await cleanup.end();
  }

  try {
    const tablesDir = join(folder, "lake", "tables");
    await mkdir(tablesDir, { recursive: true });
    const settings = {
      arrivals: { files: ARRIVING_FILES },
      harvest: { allowPrivate: privateHosts },
      lineage: { own: OWN_TENANT },
    };
    await writeFile(join(folder, "millrace.yaml"), JSON.stringify(settings)); // JSON is valid YAML.
    const env = {
      MILLRACE_PORT: "0",
      MILLRACE_DATA_DIR: folder,
      // The subscribers of the scenario listen on this machine.
      MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true",
      MILLRACE_LOG_LEVEL: logLevel,
    };
    const config = await configure({ env, flags: {}, cwd: folder });
    millrace = await start({ config, cwd: folder, print: printLine });
    const { url, firstAdminKey: key } = millrace;
    if (key === undefined) throw new Error("the first start on an empty database creates a key");
    return { url, key, tablesDir, close };
  } catch (error) {
    await close();
    throw error;
  }
}
