/** Builds the console into dist/console, with compressed copies beside each file; `npm run dev` serves it beside a running server. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const OUT_DIR = new URL("../dist/console/", import.meta.url).pathname;
const SERVER = process.env["MILLRACE_URL"] ?? "http://127.0.0.1:7400";
/** The best quality of brotli takes five times as long and saves 4%. */
const BROTLI_QUALITY = 9;

export default defineConfig({
  root: new URL(".", import.meta.url).pathname,
  plugins: [react(), compressed()],
  build: {
    outDir: OUT_DIR,
    emptyOutDir: true,
    target: "es2023",
    reportCompressedSize: false,
    // Styles and images inside the page would need exceptions in its content security policy.
    assetsInlineLimit: 0,
    // The worker of elk is the largest, and is loaded by pages with a graph only.
    chunkSizeWarningLimit: 2_000,
  },
  worker: { format: "es" },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/api": {
        target: SERVER,
        // The server accepts writes of a signed-in person from its own origin only.
        configure: (proxy) => proxy.on("proxyReq", (request) => request.setHeader("origin", SERVER)),
        changeOrigin: true,
      },
      // What the page asks to learn whether the server is there.
      "/healthz": SERVER,
      "/openapi.json": SERVER,
      "/docs": SERVER,
    },
  },
});

function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    async closeBundle() {
      const names = await readdir(OUT_DIR, { recursive: true });
      await Promise.all(
        names.filter((name) => /\.(?:js|css|svg|json)$/.test(name)).map((name) => compress(join(OUT_DIR, name))),
      );
    },
  };
}

async function compress(path: string): Promise<void> {
  const content = await readFile(path);
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(content, { params }));
  await writeFile(`${path}.gz`, await promisify(gzip)(content));
}
