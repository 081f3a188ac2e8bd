// Builds `dist/` when a source file is newer than the last build, so that `npm start` works after any change.
import { execFileSync } from "node:child_process";
import { readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const stamp = join(root, "dist/.tsbuildinfo");

export function buildIfStale() {
  const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !/\.(test|fixture)\.ts$/.test(file))
    .map((file) => join("src", file));
  const inputs = [...sources, "tsconfig.json", "tsconfig.build.json"].map((file) => join(root, file));
  const newest = Math.max(...inputs.map((file) => statSync(file).mtimeMs));
  const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (newest <= built) return;
  const begun = new Date(); // What changes while the compiler reads is not built.
  execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
  utimesSync(stamp, begun, begun); // The compiler leaves it alone when the output did not change.
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildIfStale();
