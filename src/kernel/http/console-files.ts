/**
 * Serves the built page of the web console, whose files are listed once, at the start: a path that is not in the list names no
 * file, whatever it contains. They are read when they are asked for.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import type { FastifyReply, FastifyRequest } from "fastify";
import { systemIds } from "../ids.ts";
import { ASSET_POLICY, consolePolicy, isReading } from "./browser.ts";
import { createFileCache } from "./file-cache.ts";
import { acceptsEncoding } from "./negotiation.ts";
import type { Http } from "./server.ts";

interface ListedFile {
  path: string;
  type: string;
  /** The encodings that it is there in, the best first. */
  encodings: Encoding[];
}

const ENCODINGS = [
  { name: "br", extension: ".br" },
  { name: "gzip", extension: ".gz" },
] as const;
type Encoding = (typeof ENCODINGS)[number];

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
  ".webp": "image/webp",
  ".woff2": "font/woff2",
};
const OTHER_TYPE = "application/octet-stream";

const INDEX = "/index.html";
/** What the build puts where the nonce of a reply belongs. */
const NONCE_MARK = "__CSP_NONCE__";
const NONCE_BYTES = 16;
/** The build names these after their contents. */
const ASSETS = "/assets/";
/** The first parts of paths whose answers are for programs, also where there is no route. */
const FOR_PROGRAMS = new Set(["api", "assets", "docs", "openapi.json", "metrics", "healthz", "readyz"]);
const FILES_MAX = 2_000;

/** The files by their paths in URLs; undefined if the page is not built. */
async function listFiles(directory: string): Promise<Map<string, ListedFile> | undefined> {
  if (!existsSync(directory)) return undefined;
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  if (paths.length > FILES_MAX) throw new Error(`${directory} has ${paths.length} files, more than ${FILES_MAX}`);
  const there = new Set(paths);
  const files = new Map<string, ListedFile>();
  for (const path of paths) {
    const extension = extname(path);
    if (ENCODINGS.some((one) => one.extension === extension && there.has(path.slice(0, -extension.length)))) continue;
    const encodings = ENCODINGS.filter((one) => there.has(path + one.extension));
    const url = encodeURI(`/${relative(directory, path).split(sep).join("/")}`);
    files.set(url, { path, type: TYPES[extension] ?? OTHER_TYPE, encodings });
  }
  return files.has(INDEX) ? files : undefined;
}

/** Whether there is a built page in the directory, which is then served. Call it before the server listens. */
export async function serveConsole(http: Http, directory: string): Promise<boolean> {
  const files = await listFiles(directory);
  const index = files?.get(INDEX);
  if (!files || !index) return false;
  const { read } = createFileCache();

  async function sendPage(reply: FastifyReply, { path, type }: ListedFile): Promise<FastifyReply | undefined> {
    const html = await read(path);
    if (!html) return undefined;
    const nonce = systemIds.token(NONCE_BYTES);
    return reply
      .header("cache-control", "no-store")
      .header("content-security-policy", consolePolicy(nonce))
      .header("referrer-policy", "same-origin") // Without a referrer some requests of a page have no origin either.
      .type(type)
      .send(html.toString().replaceAll(NONCE_MARK, nonce));
  }

  async function sendFile(
    { url, headers }: FastifyRequest,
    reply: FastifyReply,
    { path, type, encodings }: ListedFile,
  ): Promise<FastifyReply | undefined> {
    const encoding = encodings.find(({ name }) => acceptsEncoding(headers["accept-encoding"], name));
    const content = await read(path + (encoding?.extension ?? ""));
    if (!content) return undefined;
    if (encodings.length > 0) reply.header("vary", "accept-encoding");
    reply.header("content-security-policy", ASSET_POLICY);
    if (url.startsWith(ASSETS)) {
      reply.header("cache-control", "public, max-age=31536000, immutable");
    } else {
      const etag = `"${createHash("sha256").update(content).digest("base64url")}"`;
      reply.header("etag", etag).header("cache-control", "no-cache"); // Clients may cache it but must revalidate it.
      if (headers["if-none-match"]?.includes(etag)) return reply.code(304).send();
    }
    if (encoding) reply.header("content-encoding", encoding.name);
    return reply.type(type).send(content);
  }

  // Where no route is, so that the page takes no path from one, and other methods are answered as ever.
  http.addHook("onRequest", async (request, reply) => {
    if (!request.is404 || !isReading(request)) return;
    const [path = ""] = request.url.split("?", 1);
    const file = files.get(path);
    if (file && file !== index) return sendFile(request, reply, file);
    if (file || path === "/" || isPage(request)) return sendPage(reply, index);
  });
  return true;
}

/** A browser that opens a link accepts HTML; a program that asks for an unknown path gets the error as JSON. */
function isPage({ url, headers }: FastifyRequest): boolean {
  if (!headers.accept?.includes("text/html")) return false;
  const [path = ""] = url.replace(/^https?:\/\/[^/]*/i, "").split(/[?#;]/, 1);
  const [, first = ""] = decodeURIComponent(path).toLowerCase().split("/"); // However it is written.
  return !FOR_PROGRAMS.has(first);
}
