/** Windows of time: their units fit together, and requests ask for them. */

import { wrongTimeZone } from "../../../kernel/time/time-zone.ts";
import { DAY_MS } from "../../../kernel/time/units.ts";
import { instantOf } from "../../plan/window.ts";
import { durationMs, durationText } from "../duration.ts";
import { isTimeFormat, missingParts } from "../time-format.ts";
import { ALIGN_MS, windowDefaults } from "../window-defaults.ts";
import type { CheckInput, Finding } from "./check.ts";
import { fieldsReading } from "./check.ts";

const DURATIONS = ["granularity", "safetyLag", "minWindow", "maxWindow"] as const;

export function* windowIsComplete({ policy: { window } }: CheckInput): Iterable<Finding> {
  if (!window) return;
  if (window.watermarkKey === undefined) {
    yield { field: "window.watermarkKey", reason: "It is missing: the name of the time that the source filters on." };
  }
  if (window.granularity === undefined) {
    yield {
      field: "window.granularity",
      reason: "It is missing: the smallest unit in which the source filters, such as P1D.",
    };
  }
}

export function* windowIsReadable({ policy: { window } }: CheckInput): Iterable<Finding> {
  if (!window) return;
  for (const name of DURATIONS) {
    const text = window[name];
    if (text === undefined) continue;
    const ms = durationMs(text);
    if (ms === undefined) yield { field: `window.${name}`, reason: "It is not a duration of at most a hundred years." };
    else if (ms === 0 && name !== "safetyLag") yield { field: `window.${name}`, reason: "It is zero." };
  }
  const wrong = wrongTimeZone(window.timezone ?? "UTC");
  if (wrong !== undefined) yield { field: "window.timezone", reason: `${wrong}.` };
  const { format = "iso" } = window;
  if (!isTimeFormat(format)) {
    const known = "`iso`, `epochMs`, `epochSeconds`, or yyyy, MM, dd, HH, mm, ss and SSS with signs between them";
    yield { field: "window.format", reason: `\`${format}\` is not a format. Write ${known}.` };
  }
  const unitMs = durationMs(window.granularity ?? "");
  const missing = isTimeFormat(format) && unitMs !== undefined ? missingParts(format, unitMs) : [];
  if (missing.length > 0) {
    const reason = `\`${format}\` has no ${missing.join(" and ")}, so the units of the source cannot be told apart.`;
    yield { field: "window.format", reason };
  }
  if (window.earliest !== undefined && instantOf(window.earliest, "UTC") === undefined) {
    yield { field: "window.earliest", reason: "It is not a time, such as 2005-09-16 or 2005-09-16T00:00:00Z." };
  }
}

/** 4.4.3: narrow windows are not wider than wide ones, and consist of whole units. */
export function* widthsFit({ policy: { window } }: CheckInput): Iterable<Finding> {
  const widths = window && windowDefaults(window);
  if (!widths) return;
  const { granularityMs, minWindowMs, maxWindowMs, align } = widths;
  const unit = durationText(granularityMs);
  if (granularityMs > DAY_MS && granularityMs % DAY_MS !== 0) {
    yield { field: "window.granularity", reason: "More than a day is a whole number of days." };
  }
  if (minWindowMs > maxWindowMs) {
    yield { field: "window.minWindow", reason: `It is wider than \`maxWindow\`, ${durationText(maxWindowMs)}.` };
  }
  for (const [name, ms] of [
    ["minWindow", minWindowMs],
    ["maxWindow", maxWindowMs],
  ] as const) {
    if (ms % granularityMs === 0) continue;
    yield { field: `window.${name}`, reason: `It is not a whole number of units of the source, ${unit}.` };
  }
  const alignMs = ALIGN_MS[align];
  if (alignMs < granularityMs && granularityMs <= DAY_MS) {
    yield { field: "window.align", reason: `\`${align}\` is narrower than a unit of the source, ${unit}.` };
  }
  if (minWindowMs < alignMs) {
    yield {
      field: "window.align",
      reason: `\`${align}\` is wider than \`minWindow\`, ${durationText(minWindowMs)}: such a window cannot be aligned.`,
    };
  }
}

/** 4.17, number 3: a source that does not filter by time needs an order and a time in its records. */
export function* windowIsFiltered({ policy: { window, response } }: CheckInput): Iterable<Finding> {
  if (!window || window.supportsUpdatedSince) return;
  if (!window.monotone) {
    yield {
      field: "window.supportsUpdatedSince",
      reason:
        "The source does not filter by time, and does not declare a stable order (`monotone`) either. Without both, only known records can be updated (`ExistingSet`).",
    };
  }
  if (response.updatedAtPath === undefined) {
    yield {
      field: "response.updatedAtPath",
      reason: "The source does not filter by time, so the records need a time to be filtered by.",
    };
  }
}

export function* hintIsSomewhere({ policy: { window } }: CheckInput): Iterable<Finding> {
  const { path, header } = window?.hint ?? {};
  if (!window?.hint || (path === undefined) !== (header === undefined)) return;
  yield { field: "window.hint", reason: "It is either in a `header` or at a `path` of the answer." };
}

/** Without bounds, every slice would ask for the same records. */
export function* windowIsAskedFor(input: CheckInput): Iterable<Finding> {
  const { policy, allCompile, answersIds } = input;
  if (answersIds || !policy.window?.supportsUpdatedSince || !allCompile) return;
  if (fieldsReading(input, "window", "from").length === 0) {
    yield { field: "http.query", reason: "No template of the request uses `window.from`." };
  }
  const ends = [...fieldsReading(input, "window", "until"), ...fieldsReading(input, "window", "to")];
  if (ends.length === 0) {
    yield { field: "http.query", reason: "No template of the request uses `window.until` (inclusive) or `window.to`." };
  }
}
