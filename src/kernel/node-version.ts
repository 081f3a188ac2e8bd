/** The oldest Node that Millrace runs on, for both doctors: the server's and the command line's. */

/** As in `engines` of package.json, which npm only warns about. */
const NODE_VERSION_MIN = "20.19";

/** What to do when this Node is too old. */
export function nodeAdvice(version: string = process.versions.node): string | undefined {
  const isOlder = version.localeCompare(NODE_VERSION_MIN, "en", { numeric: true }) < 0;
  return isOlder ? `Run it on Node ${NODE_VERSION_MIN} or newer.` : undefined;
}
