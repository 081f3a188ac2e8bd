/** One line of the connection check. */
export interface CheckLine {
  name: "address" | "connection" | "credential" | "page" | "detail" | "clock" | "rate";
  verdict: "ok" | "warn" | "fail";
  found: string;
  /** What to do about it. */
  advice: string | null;
}

export const line = (
  name: CheckLine["name"],
  verdict: CheckLine["verdict"],
  found: string,
  advice: string | null = null,
): CheckLine => ({ name, verdict, found, advice });
