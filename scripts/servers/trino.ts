/** Trino as one process, with tables in memory and the generated tables of TPC-H. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findJava } from "./jdk.ts";
import { freePort } from "./jvm.ts";
import { unpacked } from "./maven.ts";
import type { Server } from "./server.ts";

const VERSION = "476";
const CATALOGS = ["memory", "tpch"];

export const trino: Server = {
  name: "trino",
  title: `Trino ${VERSION}`,
  tests: ["src/engines/trino/real-trino.test.ts", "src/engines/same-json.test.ts"],
  async prepare(folder) {
    const java = await findJava(24, Number.POSITIVE_INFINITY);
    const home = await unpacked("io.trino", "trino-server", VERSION);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await mkdir(join(folder, "plugin"));
    await mkdir(join(folder, "catalog"));
    for (const name of CATALOGS) {
      await symlink(join(home, "plugin", name), join(folder, "plugin", name)); // All plugins would take a minute to load.
      await writeFile(join(folder, "catalog", `${name}.properties`), `connector.name=${name}\n`);
    }
    const config = {
      coordinator: true,
      "node-scheduler.include-coordinator": true,
      "http-server.http.port": port,
      "discovery.uri": url,
      "plugin.dir": join(folder, "plugin"),
    };
    const lines = Object.entries(config).map(([name, value]) => `${name}=${value}\n`);
    await writeFile(join(folder, "config.properties"), lines.join(""));
    const properties = {
      "node.environment": "test",
      "node.id": "test",
      "node.data-dir": join(folder, "data"),
      "node.bind-ip": "127.0.0.1",
      "node.internal-address": "127.0.0.1",
      config: join(folder, "config.properties"),
      "catalog.config-dir": join(folder, "catalog"),
      "jdk.attach.allowAttachSelf": true,
    };
    const command = [
      java,
      "-Xmx1G",
      "-XX:+UseSerialGC",
      "-XX:TieredStopAtLevel=1",
      "--add-modules=jdk.incubator.vector",
      "--sun-misc-unsafe-memory-access=allow",
      "--enable-native-access=ALL-UNNAMED",
      ...Object.entries(properties).map(([name, value]) => `-D${name}=${value}`),
      "-cp",
      join(home, "lib", "*"),
      "io.trino.server.TrinoServer",
    ];
    return { command, env: { TEST_TRINO_URL: url }, isReady: () => answers(url) };
  },
};

async function answers(url: string): Promise<boolean> {
  const info = (await (await fetch(`${url}/v1/info`)).json()) as { starting?: boolean };
  return info.starting === false;
}
