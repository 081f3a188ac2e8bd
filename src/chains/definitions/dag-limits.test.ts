/** The limits of a definition, through the whole server: a definition at the limit must be accepted. */
import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { useChains } from "../../../test/chains.ts";
import { useDatabase } from "../../../test/database.ts";
import { DAG_BYTES_MAX, NODES_MAX } from "./dag.ts";

const chains = useChains(useDatabase());

/** A DAG whose JSON has exactly that many bytes, nearly all of them quotes: as JSON text it is twice as long. */
function dagOf(bytes: number) {
  const withText = (text: string) => ({
    nodes: [{ id: "a", type: "chain", cfg: { name: "${params.other}", params: { text } } }],
  });
  const room = bytes - JSON.stringify(withText("")).length;
  return withText('"'.repeat(Math.floor(room / 2)) + "x".repeat(room % 2));
}
interface Answer {
  error: string;
  dag: unknown;
  dagJson: string;
}
const post = (name: string, dagJson: unknown) => chains.api.post<Answer>("/api/v1/chains", { name, dagJson });

describe("a definition", () => {
  test.each(["object", "text"])("of four megabytes is accepted as %s, and returned unchanged", async (form) => {
    const dag = dagOf(DAG_BYTES_MAX);
    const { status, body } = await post(`large as ${form}`, form === "text" ? JSON.stringify(dag) : dag);
    expect(status, body.error).toBe(200);
    // Not `toEqual`, which would print four megabytes.
    expect([body.dag, JSON.parse(body.dagJson)].map((one) => isDeepStrictEqual(one, dag))).toEqual([true, true]);
  });

  test("of one byte more is refused with its size and the limit", async () => {
    const { status, body } = await post("too large", JSON.stringify(dagOf(DAG_BYTES_MAX + 1)));
    expect(status).toBe(400);
    expect(body.error).toContain(`the DAG has ${DAG_BYTES_MAX + 1} bytes, more than the ${DAG_BYTES_MAX} allowed`);
  });

  test("that is far too large is refused with the body limit", async () => {
    const { status, body } = await post("far too large", JSON.stringify(dagOf(3 * DAG_BYTES_MAX)));
    expect(status).toBe(413);
    expect(body.error).toContain(String(4 * DAG_BYTES_MAX));
  });

  test("of ten thousand nodes is accepted", async () => {
    const nodes = Array.from({ length: NODES_MAX }, (_, index) => ({ id: `n${index}`, type: "noop" }));
    expect((await post("many nodes", { nodes })).status).toBe(200);
  });
});
