// Measures what is shipped: where a benchmark imports a file of src/, it is given the same file of dist/. What the loader
// makes of TypeScript keeps the name of every function, which costs several percent where many are made.
import { register } from "node:module";
import { isMainThread } from "node:worker_threads";

const SOURCE = new URL("../src/", import.meta.url).href;
const SHIPPED = new URL("../dist/", import.meta.url).href;

if (isMainThread) register(import.meta.url); // It is loaded once more by the thread that resolves imports.

/**
 * @param {string} specifier
 * @param {object} context
 * @param {(specifier: string, context: object) => Promise<{ url: string }>} next
 */
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  const [path = "", query] = found.url.split("?");
  if (!path.startsWith(SOURCE) || !path.endsWith(".ts") || path.endsWith(".fixture.ts")) return found;
  const shipped = `${SHIPPED}${path.slice(SOURCE.length, -".ts".length)}.js`;
  return { ...found, url: query === undefined ? shipped : `${shipped}?${query}`, format: "module" };
}
