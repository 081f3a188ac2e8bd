/** 128 bits of a text's sha256, written as a uuid: a column of that type holds them in 16 bytes. */
import { hash } from "node:crypto";
import { hexAsUuid } from "../../kernel/ids.ts";

export function hashUuid(text: string): string {
  return hexAsUuid(hash("sha256", text, "hex"));
}
