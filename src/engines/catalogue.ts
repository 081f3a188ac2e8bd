/** What engines adds to the catalogues of Millrace: its section of the configuration file is all that people see of it. */
import type { Catalogue } from "../kernel/catalogue.ts";

export const CATALOGUE = { name: "engines" } as const satisfies Catalogue;
