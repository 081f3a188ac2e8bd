/** One call of the pipeline API, for the worker processes of these tests. The environment has the URL and the key. */

const { MILLRACE_URL = "", MILLRACE_KEY = "" } = process.env;

/**
 * @param {string} path
 * @param {object} body
 * @returns {Promise<{ status: number, body: any }>}
 */
export async function call(path, body) {
  const response = await fetch(`${MILLRACE_URL}/api/v1/pipeline${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${MILLRACE_KEY}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

/** @param {object} line */
export function print(line) {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
