/** 128 bits of a text's sha256, written as a uuid: a column of that type holds them in 16 bytes. */
import { hash } from "node:crypto";

export function hashUuid(text: string): string {
  const hex = hash("sha256", text, "hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}
