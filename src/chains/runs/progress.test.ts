import { afterEach, expect, test, vi } from "vitest";
import { noHints } from "../../../test/no-hints.ts";
import type { Db } from "../../kernel/data/db.ts";
import { progressTopic } from "../topics.ts";
import { createProgress } from "./progress.ts";

const RUN = "00000000-0000-7000-8000-000000000001";
const OTHER = "00000000-0000-7000-8000-000000000002";

afterEach(() => void vi.useRealTimers());

test("many changes within 100 ms are one hint per topic, and later changes are hinted again", () => {
  vi.useFakeTimers();
  const hints: string[] = [];
  const progress = createProgress({
    db: {} as Db,
    wake: { hint: (topic) => void hints.push(topic) },
    hints: noHints,
  });
  for (let n = 0; n < 100; n += 1) progress.changed([RUN]);
  progress.changed([OTHER]);
  expect(hints).toEqual([]);
  vi.advanceTimersByTime(100);
  expect(hints).toEqual([progressTopic(RUN), progressTopic(OTHER)]);
  progress.changed([RUN]);
  vi.advanceTimersByTime(100);
  expect(hints).toEqual([progressTopic(RUN), progressTopic(OTHER), progressTopic(RUN)]);
});
