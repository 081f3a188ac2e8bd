/** The exit codes of commands. Scripts depend on these numbers, so they are API: never renumber one. */

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  wrongState: 3,
  notFound: 4,
  notAllowed: 5,
  unreachable: 6,
  nothingToClaim: 7,
  runStopped: 8,
} as const;

/** What shells report for a command that Ctrl-C ended; also for one that was only watching. */
export const INTERRUPTED = 130;

/** For `--help`. */
export const EXIT_CODES: readonly [code: number, meaning: string][] = [
  [EXIT.ok, "done"],
  [EXIT.failed, "failed"],
  [EXIT.usage, "wrong usage, settings or values"],
  [EXIT.wrongState, "refused because of the present state, such as a lost lease"],
  [EXIT.notFound, "not found"],
  [EXIT.notAllowed, "the key is missing or may not do that"],
  [EXIT.unreachable, "the server cannot be reached or is busy: try again later"],
  [EXIT.nothingToClaim, "there was nothing to claim"],
  [EXIT.runStopped, "the run or plan that was watched has been stopped"],
];

const BY_STATUS: Readonly<Record<number, number>> = {
  400: EXIT.usage,
  401: EXIT.notAllowed,
  403: EXIT.notAllowed,
  404: EXIT.notFound,
  409: EXIT.wrongState,
  413: EXIT.usage,
  415: EXIT.usage,
  429: EXIT.unreachable,
  // A gateway answers 502 or 504 when the server is down.
  502: EXIT.unreachable,
  503: EXIT.unreachable,
  504: EXIT.unreachable,
};

/** The error code takes precedence over the status: some routes of chains answer 400 for something that is not found. */
export function exitCodeOf(httpStatus: number, errorCode?: string): number {
  if (errorCode?.endsWith("_NOT_FOUND")) return EXIT.notFound;
  return BY_STATUS[httpStatus] ?? EXIT.failed;
}
