/**
 * The declaration of kinds of hints, and those of the kernel; each module has its own in its catalogue. Names are API:
 * `docs/events.md` is generated from these tables, and a test compares them.
 */

/** By kind, such as `run`. */
export type HintTable = Readonly<
  Record<
    string,
    {
      /** Callers without this scope do not receive the hint. */
      readonly scope: string;
      /** What the id of a hint is. */
      readonly id: string;
      /** What has changed. */
      readonly help: string;
    }
  >
>;

export const KERNEL_HINTS = {
  key: { scope: "admin", id: "id of the key", help: "It was created or revoked." },
  secret: { scope: "admin", id: "name of the secret", help: "It was set or deleted." },
  gate: {
    scope: "admin",
    id: "key of the gate",
    help: "It was declared, withdrawn or opened, slowed down, or its service sent other limits. Its counts change without a hint.",
  },
} as const satisfies HintTable;
