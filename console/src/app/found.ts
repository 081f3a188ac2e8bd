/** What a module contributes to the search of the whole console. */
import type { IconName } from "../parts/controls/icons.tsx";

export interface Found {
  title: string;
  /** What it is, such as the table of a column. */
  detail?: string;
  /** The address of its page. */
  to: string;
}

export interface Finder {
  icon: IconName;
  /** A key without it finds nothing here. */
  scope: string;
  find(query: string, signal: AbortSignal): Promise<readonly Found[]>;
}
