/** The reason of a failure as a line of the log has it: its beginning. The whole is stored with what failed. */
const REASON_LOGGED_MAX = 1_000;

export function loggedReason(reason: string): string {
  return reason.slice(0, REASON_LOGGED_MAX);
}
