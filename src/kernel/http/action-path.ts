/** Paths that end in an action, such as `/runs/{runId}:stop`: in the syntax of the router, and as people write them. */

/**
 * The pattern that ends a parameter before the action. It matches any text, including colons and line breaks: the route
 * checks whether it is an id.
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
