/**
 * The modules of Millrace, in the order in which they are opened: each finds what it needs in those before it. A new one is
 * added here, and nowhere else beside its folder and its file in sql/.
 */
import { arrivals } from "./arrivals/index.ts";
import { chains } from "./chains/index.ts";
import { engines } from "./engines/index.ts";
import { mergeCatalogues } from "./kernel/catalogue.ts";
import { moduleList } from "./kernel/module.ts";
import { lineage } from "./lineage/index.ts";
import { tracking } from "./tracking/index.ts";
import { webhooks } from "./webhooks/index.ts";

export const MODULES = moduleList(engines, webhooks, chains, arrivals, tracking, lineage);

/** All their words, and those of the kernel. */
export const CATALOGUE = mergeCatalogues(MODULES);
