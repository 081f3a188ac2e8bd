/** What the script has to know of a server. */

export interface Server {
  name: string;
  title: string;
  /** Patterns of test files for vitest. */
  tests: readonly string[];
  /** Fetches it, and writes its configuration into the folder, which is removed afterwards. Throws Unavailable. */
  prepare(folder: string): Promise<Prepared>;
}

export interface Prepared {
  /** `java` and its arguments. */
  command: readonly string[];
  /** Tells the tests where it is. */
  env: Record<string, string>;
  isReady(): Promise<boolean>;
}

/** This machine cannot have the server, for the reason that the message gives. */
export class Unavailable extends Error {}
