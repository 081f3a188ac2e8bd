/** Stands for Millrace in a test that kills it: runs its argument as a command and exits when the command has ended. */
import { runInGroup } from "./process-group.ts";

await runInGroup("/bin/sh", ["-c", process.argv[2] ?? ""], {
  cwd: undefined,
  env: { PATH: process.env["PATH"] ?? "" },
  signal: new AbortController().signal,
  killAfterMs: 5_000,
  onStdout: (text) => process.send?.(text),
  onStderr: () => undefined,
});
