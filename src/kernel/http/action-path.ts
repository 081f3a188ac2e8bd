/** Paths that end in an action, such as `/runs/{runId}:stop`: how the router wants them written, and how people read them. */

/**
 * What the router needs to end a parameter before the action. It takes any text, colons and line breaks too: whether that
 * is an id is for the route to say, in its own words.
 */
const ANY_TEXT = "(^[^]+)";

/** `actionPath("/runs/:runId", "stop")` matches `/runs/42:stop`. */
export function actionPath(resource: `${string}/:${string}`, action: string): string {
  return `${resource}${ANY_TEXT}::${action}`;
}

/** A route as it is shown in metrics, traces and messages. */
export function shownRoute(url: string | undefined): string {
  return url?.replaceAll(`${ANY_TEXT}::`, ":") ?? "unknown";
}
