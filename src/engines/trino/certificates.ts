/** Reads the certificates of a private authority. A wrong file would otherwise show as a server that is not trusted. */
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { messageOf } from "../../kernel/text/message-of.ts";
import { EngineRefusal } from "../engine.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export async function readCertificates(path: string, engine: string): Promise<string> {
  try {
    const found = (await readFile(path, "utf8")).match(CERTIFICATE) ?? [];
    const certificates = found.map((text) => new X509Certificate(text).toString()); // Throws at one that is damaged.
    if (certificates.length > 0) return certificates.join("");
  } catch (error) {
    throw wrong(path, engine, `cannot be read: ${messageOf(error)}`, error);
  }
  throw wrong(path, engine, "has no certificate. It must be PEM, with `-----BEGIN CERTIFICATE-----`");
}

function wrong(path: string, engine: string, what: string, cause?: unknown): EngineRefusal {
  const sentence = `The \`ca\` of the engine \`${engine}\` in millrace.yaml names ${resolve(path)}, which ${what}.`;
  return new EngineRefusal(sentence, { cause });
}
