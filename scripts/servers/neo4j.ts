/** Neo4j, without a login and with Bolt only: its packages are a library, so a few lines of Java start it. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import neo4jDriver from "neo4j-driver";
import { findJava } from "./jdk.ts";
import { freePort } from "./jvm.ts";
import { withDependencies } from "./maven.ts";
import type { Server } from "./server.ts";

const VERSION = "5.26.0";
const START = `
import java.nio.file.Path;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

class Start {
  public static void main(String[] args) {
    Path home = Path.of(args[0]);
    var service = new DatabaseManagementServiceBuilder(home).loadPropertiesFromFile(home.resolve("conf/neo4j.conf")).build();
    Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
  }
}
`;

export const neo4j: Server = {
  name: "neo4j",
  title: `Neo4j ${VERSION}`,
  tests: ["src/lineage/neo4j"],
  async prepare(folder) {
    const java = await findJava(17, 21);
    const jars = await withDependencies(["org.neo4j:neo4j", "org.neo4j:neo4j-bolt"], VERSION);
    const address = `127.0.0.1:${await freePort()}`;
    const url = `bolt://${address}`;
    const config = {
      "dbms.security.auth_enabled": false,
      "server.bolt.enabled": true,
      "server.bolt.listen_address": address,
      "dbms.usage_report.enabled": false,
      "server.memory.pagecache.size": "64m",
    };
    await mkdir(join(folder, "conf"));
    const lines = Object.entries(config).map(([name, value]) => `${name}=${value}\n`);
    await writeFile(join(folder, "conf", "neo4j.conf"), lines.join(""));
    await writeFile(join(folder, "Start.java"), START);
    const opened = ["java.nio", "java.io", "sun.nio.ch", "java.util.concurrent"];
    const command = [
      java,
      "-Xmx768m",
      "-XX:+UseSerialGC",
      "-XX:TieredStopAtLevel=1",
      ...opened.map((name) => `--add-opens=java.base/${name}=ALL-UNNAMED`),
      "-cp",
      join(jars, "*"),
      join(folder, "Start.java"),
      folder,
    ];
    return { command, env: { TEST_NEO4J_URL: url }, isReady: () => answers(url) };
  },
};

async function answers(url: string): Promise<boolean> {
  const driver = neo4jDriver.driver(url, neo4jDriver.auth.basic("neo4j", "neo4j"));
  try {
    await driver.verifyConnectivity();
    return true;
  } finally {
    await driver.close();
  }
}
