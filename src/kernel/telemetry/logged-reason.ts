/** Cuts the reason of a failure for the log. The whole reason is stored with what failed. */
const REASON_LOGGED_MAX = 1_000;

export function loggedReason(reason: string): string {
  return reason.slice(0, REASON_LOGGED_MAX);
}
