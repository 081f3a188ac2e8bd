/** What a node waits for, in both languages. */
import { expect, test } from "vitest";
import type { RunNode } from "./api.ts";
import { waitsText } from "./waits.ts";
import { chainWords } from "./words.ts";

type Waits = NonNullable<RunNode["waits"]>;

test.each<[en: string, zh: string, waits: Partial<Waits>, childRunId?: string]>([
  ["1 parent to finish", "1 个上游节点结束", { parents: 1 }],
  ["2 parents to finish and the tables a, b", "2 个上游节点结束，以及表 a, b 到达", { parents: 2, tables: ["a", "b"] }],
  ["a free worker", "空闲的执行进程", { cause: "slot" }],
  [
    "a slot in the pool `etl` and a free worker",
    "资源池 `etl` 的空位，以及空闲的执行进程",
    { cause: "slot", pool: "etl" },
  ],
  [
    "its next attempt, due at 12:00 and a process with the role `scheduler`: none is alive",
    "下一次尝试（12:00），以及角色为 `scheduler` 的进程（当前没有存活的）",
    { cause: "retry", unservedRole: "scheduler" },
  ],
  ["run r1, which an earlier attempt started, to stop", "之前的尝试启动的运行 r1 停止", { cause: "stop" }, "r1"],
  ["run r1", "运行 r1", { cause: "started" }, "r1"],
  ["the work that it started", "其启动的工作结束", { cause: "started" }],
  ["another worker, since its own is lost", "其他执行进程接手（原进程已失联）", { cause: "lost" }],
])("waits for %s", (en, zh, given, childRunId) => {
  const waits: Waits = { cause: "inputs", parents: 0, tables: [], pool: null, unservedRole: null, ...given };
  const node = { waits, dueAt: "2026-04-01T12:00:00Z", childRunId: childRunId ?? null };
  const time = (at: string) => at.slice(11, 16);
  const said = (text: (typeof chainWords)["en"]) => waitsText(node, text, time);
  expect([said(chainWords.en), said(chainWords.zh)]).toEqual([en, zh]);
  expect(waitsText({ ...node, waits: null }, chainWords.en, time)).toBeUndefined();
});
