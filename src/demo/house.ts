/**
 * Where the demo plays: a Millrace in this process, with a Postgres of its own, in a temporary folder that vanishes with it.
 * Nothing of the user's settings counts here, least of all a DATABASE_URL.
 */
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configure, type Millrace, start } from "../app.ts";
import { ARRIVING_FILES } from "./definitions.ts";
import { removeFolder, startSweeper } from "./sweeper.ts";

export interface House {
  url: string;
  /** An admin's. */
  key: string;
  /** Where the tables of the lake lie, one folder each. */
  tablesDir: string;
  /** Stops everything and leaves nothing. */
  close(): Promise<void>;
}

export interface OpenHouseOptions {
  tell: (line: string) => void;
  logLevel: string;
}

export async function openHouse({ tell, logLevel }: OpenHouseOptions): Promise<House> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-demo-"));
  const sweeper = startSweeper(folder);
  let millrace: Millrace | undefined;

  async function close(): Promise<void> {
    await millrace?.stop();
    await removeFolder(folder);
    await sweeper.dismiss();
  }

  try {
    const tablesDir = join(folder, "lake", "tables");
    await mkdir(tablesDir, { recursive: true });
    // JSON is YAML too.
    await writeFile(join(folder, "millrace.yaml"), JSON.stringify({ arrivals: { files: ARRIVING_FILES } }));
    const env = {
      MILLRACE_PORT: "0",
      MILLRACE_DATA_DIR: folder,
      // The shop and the subscribers of the story listen on this machine.
      MILLRACE_WEBHOOKS_ALLOW_PRIVATE: "true",
      MILLRACE_LOG_LEVEL: logLevel,
    };
    const config = await configure({ env, flags: {}, cwd: folder });
    millrace = await start({ config, cwd: folder, tell });
    const { url, firstAdminKey: key } = millrace;
    if (key === undefined) throw new Error("the first start of a database makes a key");
    return { url, key, tablesDir, close };
  } catch (error) {
    await close();
    throw error;
  }
}
