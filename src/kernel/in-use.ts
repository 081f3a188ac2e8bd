/**
 * Who names something that is about to be deleted. A module adds its search while it is opened, so whoever deletes need not know
 * the modules that name it: a chain is named by models, a secret by sources.
 */
import type { Queryable } from "./data/db.ts";

/** `what` is a noun, as in the refusal of an unknown name. Answers words such as "model `M` runs it". */
export type FindUser = (tx: Queryable, what: string, name: string) => Promise<string | undefined>;

export interface InUse {
  add(find: FindUser): void;
  /** The first user, in words; undefined if nothing names it. */
  by: FindUser;
}

export function createInUse(): InUse {
  const searches: FindUser[] = [];
  return {
    add: (find) => void searches.push(find),
    async by(tx, what, name) {
      for (const find of searches) {
        const user = await find(tx, what, name);
        if (user !== undefined) return user;
      }
      return undefined;
    },
  };
}
