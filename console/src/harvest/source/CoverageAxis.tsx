/** The time of a namespace as a line: what is harvested, each gap, the watermark, and how far it could be. */
import { GLYPHS } from "../../parts/states/state.ts";
import { useWords } from "../../words/words.ts";
import type { Coverage, Stretch } from "../api.ts";
import styles from "../harvest.module.css";
import { STRETCH_STATES } from "../states.ts";
import { useEdgeText } from "../WindowText.tsx";
import { harvestWords } from "../words.ts";

const KINDS = ["complete", "gap", "accepted", "open", "none"] as const satisfies readonly Stretch["kind"][];

interface CoverageAxisProps {
  cursor: Coverage;
  openSlice: number | undefined;
  onOpen(sliceId: number): void;
}

export function CoverageAxis({ cursor, openSlice, onOpen }: CoverageAxisProps) {
  const text = useWords(harvestWords);
  const edge = useEdgeText();
  const { from, to, watermark, closedUntil, stretches, namespace } = cursor;
  // That of a backfill ends where HARVEST began.
  const hasClosed = Date.parse(closedUntil) <= Date.parse(to);
  const [startMs, endMs] = [Date.parse(from), Date.parse(to)];
  const at = (time: string) => `${((Date.parse(time) - startMs) / Math.max(1, endMs - startMs)) * 100}%`;
  const width = (one: Stretch) =>
    `${((Date.parse(one.to) - Date.parse(one.from)) / Math.max(1, endMs - startMs)) * 100}%`;
  const kinds = KINDS.filter((kind) => stretches.some((one) => one.kind === kind));
  return (
    <figure className={styles.section} aria-label={text.axisOf(namespace)}>
      <div className={styles.axis}>
        {stretches.map((one) => {
          const { kind, sliceId } = one;
          const label = text.stretchText(text[kind], edge(one.from), edge(one.to));
          const look = {
            className: styles.stretch,
            "data-kind": kind,
            style: { left: at(one.from), width: width(one) },
          };
          return sliceId === null ? (
            <span key={one.from} {...look} title={label} />
          ) : (
            <button
              key={one.from}
              type="button"
              {...look}
              title={one.reason === null ? label : `${label}. ${one.reason}`}
              aria-label={label}
              aria-pressed={sliceId === openSlice}
              onClick={() => onOpen(sliceId)}
            >
              {kind === "gap" && <span aria-hidden="true">{GLYPHS.failed}</span>}
            </button>
          );
        })}
        {watermark !== null && (
          <span className={styles.mark} style={{ left: at(watermark) }}>
            <span style={{ transform: `translateX(-${at(watermark)})` }}>{text.watermark}</span>
          </span>
        )}
        {hasClosed && <span className={styles.mark} data-kind="closed" style={{ left: at(closedUntil) }} />}
      </div>
      <div className={styles.edges}>
        <span>{edge(from)}</span>
        <span>{edge(to)}</span>
      </div>
      <figcaption className={styles.legend}>
        {kinds.map((kind) => (
          <span key={kind}>
            <i data-state={STRETCH_STATES[kind]} data-kind={kind} aria-hidden="true" /> {text[kind]}
          </span>
        ))}
        {hasClosed && (
          <span>
            <i data-kind="closed" aria-hidden="true" /> {text.closedUntil}
          </span>
        )}
      </figcaption>
    </figure>
  );
}
