/** Fetches the records of the ids that a list named. Ids that the source does not answer are asked for once more, alone. */
import { nextIds } from "../store/records/id-items.ts";
import { makeWay } from "./background.ts";
import { createCommits } from "./commits.ts";
import { fetchAt } from "./page-at.ts";
import { commitPage, keepBody } from "./page-commit.ts";
import { contentOf, type PageContent } from "./page-content.ts";
import type { Position } from "./position.ts";
import { answeringOf } from "./update-walk.ts";
import { countNew, endOf, overBudget, type Walk, type WalkDeps, type WalkEnd } from "./walk.ts";

/** Alone, an id is answered by whatever comes, also by a record that came for another spelling of it: it counts as the answer to the id. */
function contentFor([id, ...others]: readonly { item_id: string }[], content: PageContent): PageContent {
  if (!id || others.length > 0) return content;
  return { ...content, records: content.records.map((record) => ({ ...record, item_key: id.item_id })) };
}

export async function walkDetails(deps: WalkDeps, walk: Walk, state: "NEW" | "RETRY"): Promise<WalkEnd | undefined> {
  const detail = answeringOf(walk);
  if (!detail) return undefined;
  const slice = { sliceId: walk.task.context.slice_id, generation: walk.generation };
  const size = state === "NEW" ? detail.spec.batching.idBatchSize : 1; // What was missing is asked for alone.
  const commits = createCommits();
  let after = 0;
  let ids = await nextIds(deps.db, slice, state, { after, limit: size });
  while (ids.length > 0) {
    const asked = ids;
    const position: Position = { pageNo: walk.batchNo + 1, isListed: true };
    const fetched = await commits.whileCommitting(
      fetchAt(deps, walk, detail, position, { ids: asked.map(({ item_id }) => item_id) }),
    );
    if (fetched.kind !== "page") {
      await commits.done();
      return endOf(deps, walk, fetched);
    }
    const body = keepBody(deps, detail, fetched.exchange);
    const content = contentOf(fetched.page);
    const counted = countNew(walk, contentFor(asked, content), "=");
    if (content.latest && (!walk.latest || content.latest > walk.latest)) walk.latest = content.latest;
    await commits.done();
    commits.start(
      commitPage(deps, walk, {
        phase: 2,
        endpoint: detail,
        exchange: fetched.exchange,
        page: fetched.page,
        content,
        body,
        ...counted,
        before: position,
        next: { pageNo: position.pageNo, isListed: true },
        asked: { ids: asked, isRetry: state === "RETRY" },
      }),
    );
    const paused = overBudget(deps, walk) ?? (await makeWay(deps, walk));
    if (paused) {
      await commits.done();
      return paused;
    }
    after = asked.at(-1)?.ord ?? after;
    ids = await nextIds(deps.db, slice, state, { after, limit: size });
  }
  await commits.done();
  return undefined;
}
