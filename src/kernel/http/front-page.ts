/** The page at `/` of a process without the console: version, roles and links. No scripts, no external resources. */

export interface FrontPage {
  version: string;
  roles: readonly string[];
  database: string;
  startedAt: Date;
  /** The process would serve the console if it were built. */
  lacksConsole?: boolean;
}

/** Of a process with the role `api`. */
const API_LINKS: readonly [path: string, text: string][] = [
  ["/docs", "API reference, with every call and its fields"],
  ["/openapi.json", "the API as an OpenAPI 3.1 document"],
];
const LINKS: readonly [path: string, text: string][] = [
  ["/metrics", "metrics for Prometheus"],
  ["/readyz", "whether this process is ready"],
];

const NO_API = `<p>This process answers for its health and metrics. The console and the API are at a process with the role <code>api</code>.</p>
`;
const NOT_BUILT = `<p>The web console is not built: <code>npm run build</code> makes it, and the next start serves it.</p>
`;

export function frontPage({ version, roles, database, startedAt, lacksConsole }: FrontPage): string {
  const isApi = roles.includes("api");
  const links = isApi ? [...API_LINKS, ...LINKS] : LINKS;
  const facts = [
    ["Version", version],
    ["Roles of this process", roles.join(", ")],
    ["Database", database],
    ["Running since", startedAt.toISOString()],
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Millrace</title>
<style>
  :root { color-scheme: light dark; --line: light-dark(#d8dee4, #30363d); --soft: light-dark(#57606a, #9198a1); }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1.25rem; }
  h1 { font-size: 1.75rem; margin: 0; }
  p { color: var(--soft); margin: .25rem 0 2rem; }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .5rem 2rem; border-block: 1px solid var(--line); padding: 1rem 0; }
  dt { color: var(--soft); }
  dd { margin: 0; }
  li { margin: .5rem 0; }
  ul { padding-left: 1.1rem; }
</style>
</head>
<body>
<h1>Millrace is running</h1>
<p>The control plane between a data source and a published metric.</p>
${lacksConsole ? NOT_BUILT : ""}${isApi ? "" : NO_API}<dl>${facts.map(([name, value]) => `<dt>${name}</dt><dd>${escapeHtml(value ?? "")}</dd>`).join("\n")}</dl>
<ul>
${links.map(([path, text]) => `<li><a href="${path}">${path}</a>: ${text}</li>`).join("\n")}
</ul>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
