/** Fetches packages with Maven, by their coordinates and from wherever Maven is configured to. They are kept beside the dependencies. */
import { execFile } from "node:child_process";
import { access, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { Unavailable } from "./server.ts";

const PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1";
const FETCH_TIMEOUT_MS = 30 * 60_000;
/** Ignored by git, and removed by `npm ci`. */
const CACHE = resolve("node_modules/.cache/millrace-servers");

/** A package that is an archive, unpacked: the folder in it. */
export async function unpacked(group: string, artifact: string, version: string): Promise<string> {
  const name = `${artifact}-${version}`;
  const whole = join(CACHE, name);
  if (await exists(whole)) return join(whole, name);
  const partial = await emptied(`${whole}.partial`);
  await maven([`${PLUGIN}:copy`, `-Dartifact=${group}:${artifact}:${version}:tar.gz`, `-DoutputDirectory=${partial}`]);
  await promisify(execFile)("tar", ["xzf", join(partial, `${name}.tar.gz`), "-C", partial]);
  await rm(join(partial, `${name}.tar.gz`));
  await rename(partial, whole);
  return join(whole, name);
}

/** Packages of one version and all that they need at run time: the folder of their jars. */
export async function withDependencies(names: readonly string[], version: string): Promise<string> {
  const whole = join(CACHE, [...names, version].join("-").replaceAll(":", "-"));
  if (await exists(whole)) return whole;
  const partial = await emptied(`${whole}.partial`);
  const pom = join(partial, "pom.xml");
  await writeFile(pom, pomOf(names, version));
  await maven(["-f", pom, `${PLUGIN}:copy-dependencies`, "-DincludeScope=runtime", `-DoutputDirectory=${partial}`]);
  await rename(partial, whole);
  return whole;
}

function pomOf(names: readonly string[], version: string): string {
  const dependencies = names.map((name) => {
    const [group = "", artifact = ""] = name.split(":");
    return `<dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`;
  });
  return `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>millrace</groupId><artifactId>test-servers</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>${dependencies.join("")}</dependencies>
</project>
`;
}

async function maven(args: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)("mvn", ["-q", "-B", ...args], { timeout: FETCH_TIMEOUT_MS });
  } catch (error) {
    const { code, stdout = "", message } = error as NodeJS.ErrnoException & { stdout?: string };
    if (code === "ENOENT") throw new Unavailable("It is fetched with Maven, and there is no `mvn` on the path.");
    const [reason = message] = stdout.split("\n").filter((line) => line.includes("[ERROR]"));
    throw new Unavailable(`Maven cannot fetch it: ${reason}`);
  }
}

async function emptied(folder: string): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return folder;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
