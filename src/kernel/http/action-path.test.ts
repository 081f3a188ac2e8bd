import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useDatabase } from "../../../test/database.ts";
import { startHttp, type TestHttp } from "../../../test/http.ts";
import { actionPath, shownRoute } from "./action-path.ts";

const database = useDatabase();
const open = { config: { scope: "public" } } as const;
let http: TestHttp;

beforeAll(async () => {
  http = await startHttp({
    db: database.db,
    routes(server) {
      server.get("/runs/:runId", open, async ({ params }) => ({ route: "run", params }));
      for (const action of ["stop", "retry"]) {
        server.post(actionPath("/runs/:runId", action), open, async ({ params }) => ({ route: action, params }));
      }
      const node = actionPath("/runs/:runId/nodes/:nodeId", "retry");
      server.post(node, open, async ({ params }) => ({ route: "node", params }));
    },
  });
});
afterAll(() => http.stop());

const post = (path: string) => http.send(path, { method: "POST" });

describe("a path with an action", () => {
  test("reaches its own route, with the id alone as the parameter", async () => {
    expect(await post("/runs/42:stop")).toMatchObject({
      status: 200,
      body: { route: "stop", params: { runId: "42" } },
    });
    expect(await post("/runs/42:retry")).toMatchObject({ body: { route: "retry", params: { runId: "42" } } });
  });

  test("may follow another parameter", async () => {
    expect(await post("/runs/42/nodes/my-node.2_x:retry")).toMatchObject({
      body: { route: "node", params: { runId: "42", nodeId: "my-node.2_x" } },
    });
  });

  test("has any text before the action as its id, which the route checks", async () => {
    expect(await post("/runs/42:stop:stop")).toMatchObject({ body: { route: "stop", params: { runId: "42:stop" } } });
    expect(await post("/runs/a%0Ab:stop")).toMatchObject({ body: { route: "stop", params: { runId: "a\nb" } } });
  });

  test("does not affect the path without an action", async () => {
    expect(await http.send("/runs/42")).toMatchObject({ body: { route: "run", params: { runId: "42" } } });
  });

  test.each(["/runs/42:halt", "/runs/:stop", "/runs/42:stopp", "/runs/4/2:stop"])(
    "is not found as %s",
    async (path) => {
      expect(await post(path)).toMatchObject({ status: 404, body: { code: "ROUTE_NOT_FOUND" } });
    },
  );

  test("is shown as people write it", async () => {
    const { body } = await post("/runs/:runId:stopp");
    expect(body["error"]).toMatch(/Did you mean POST \/runs\/:runId:stop\?$/);
    const metrics = await http.metrics.render();
    expect(metrics).toContain('route="/runs/:runId:stop"');
    expect(metrics).not.toContain("[^");
  });
});

test("a route is shown without the pattern of the router", () => {
  expect(shownRoute(actionPath("/runs/:runId/nodes/:nodeId", "retry"))).toBe("/runs/:runId/nodes/:nodeId:retry");
  expect(shownRoute("/runs/:runId")).toBe("/runs/:runId");
  expect(shownRoute(undefined)).toBe("unknown");
});
