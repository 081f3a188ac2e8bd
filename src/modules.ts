/**
 * The modules of Millrace, in the order in which they are opened: each needs only modules before it. A new module is
 * added here, in its own folder and in a file of sql/, and nowhere else.
 */
import { arrivals } from "./arrivals/index.ts";
import { chains } from "./chains/index.ts";
import { engines } from "./engines/index.ts";
import { harvest } from "./harvest/index.ts";
import { mergeCatalogues } from "./kernel/catalogue.ts";
import { moduleList } from "./kernel/module.ts";
import { lineage } from "./lineage/index.ts";
import { tracking } from "./tracking/index.ts";
import { webhooks } from "./webhooks/index.ts";

export const MODULES = moduleList(engines, webhooks, chains, arrivals, tracking, harvest, lineage);

/** The merged catalogue of the kernel and all modules. */
export const CATALOGUE = mergeCatalogues(MODULES);
