/** What engines adds to the catalogues of Millrace: the folder of the lake. Engines are in the configuration file. */
import type { Catalogue } from "../kernel/catalogue.ts";
import { path } from "../kernel/config/kinds.ts";

export const CATALOGUE = {
  name: "engines",
  settings: {
    lakeDir: {
      env: "MILLRACE_LAKE_DIR",
      flag: "lake-dir",
      kind: path,
      description:
        "The lake: the folder of tables as Parquet files, shared where there are several machines; without it `lake` in the data directory.",
    },
  },
} as const satisfies Catalogue;
