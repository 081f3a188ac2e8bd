/** Finds a JDK of a fitting version: that of JAVA_HOME, of the path, or one of those that the system has beside them. */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Unavailable } from "./server.ts";

/** Where Linux distributions put them. */
const FOLDER = "/usr/lib/jvm";

/** The path of its `java`. Both ends are included. */
export async function findJava(from: number, to: number): Promise<string> {
  const { JAVA_HOME } = process.env;
  const others = await readdir(FOLDER).catch(() => []);
  const homes = [...(JAVA_HOME === undefined ? [] : [JAVA_HOME]), ...others.map((name) => join(FOLDER, name))];
  for (const java of ["java", ...homes.map((home) => join(home, "bin", "java"))]) {
    const version = await versionOf(java);
    if (version !== undefined && version >= from && version <= to) return java;
  }
  throw new Unavailable(
    `It needs a JDK of version ${from}${to === Number.POSITIVE_INFINITY ? " or later" : ` to ${to}`}. Set JAVA_HOME to one.`,
  );
}

/** `openjdk version "25.0.1"`, which is printed as an error. */
async function versionOf(java: string): Promise<number | undefined> {
  try {
    const { stderr } = await promisify(execFile)(java, ["-version"]);
    return Number(/version "(\d+)/.exec(stderr)?.[1] ?? Number.NaN);
  } catch {
    return undefined;
  }
}
