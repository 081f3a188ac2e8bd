// Builds what is older than its sources, server and console each for itself, so that `npm start` works after any change.
import { execFileSync } from "node:child_process";
import { readdirSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Each part is as old as its last output file: the compiler and vite leave or write that one at every build. */
const PARTS = [
  {
    script: "build:server",
    folder: "src",
    config: ["tsconfig.json", "tsconfig.build.json"],
    output: "dist/.tsbuildinfo",
  },
  { script: "build:console", folder: "console", config: [], output: "dist/console/index.html" },
];

export function buildIfStale() {
  for (const { script, folder, config, output } of PARTS) {
    const sources = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.(?:tsx?|css|html|svg|json)$/.test(file) && !/\.(test|fixture)\.ts$/.test(file))
      .map((file) => join(folder, file));
    const newest = Math.max(...[...sources, ...config].map((file) => statSync(join(root, file)).mtimeMs));
    const stamp = join(root, output);
    const built = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (newest <= built) continue;
    const begun = new Date(); // What changes while the build reads is not built.
    // Tests set another NODE_ENV, with which the page would be built for development.
    const env = { ...process.env, NODE_ENV: "production" };
    execFileSync("npm", ["run", "--silent", script], { cwd: root, stdio: "inherit", env });
    utimesSync(stamp, begun, begun); // The compiler leaves it alone when the output did not change.
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) buildIfStale();
