/** A node of the graph: icon, title, state and a line of the module's own. A group shows how many nodes are in which state. */
import { Handle, Position } from "@xyflow/react";
import { type ComponentType, createContext, memo, useContext } from "react";
import { common } from "../../words/common.ts";
import { useWords } from "../../words/words.ts";
import { Icon } from "../controls/icons.tsx";
import { StateMark } from "../states/StateMark.tsx";
import { useFormats } from "../times/time.ts";
import { type Group, useCard, useIsSelected } from "./cards.ts";
import styles from "./Graph.module.css";
import type { GraphNode, Side } from "./model.ts";
import { graphWords } from "./words.ts";

export interface CardParts {
  /** The second line, and what is below it. */
  Content?: ComponentType<{ node: GraphNode }> | undefined;
  onMore?: ((id: string, side: Side) => void) | undefined;
}
const PartsContext = createContext<CardParts>({});
export const CardPartsProvider = PartsContext.Provider;

/** The name of a card for screen readers is its own text. */
export function labelIdOf(id: string): string {
  return `graph-card-${id}`;
}

export const GraphCard = memo(function GraphCard({ id }: { id: string }) {
  const card = useCard(id);
  const isSelected = useIsSelected(id);
  if (!card) return null;
  return (
    <>
      {card.kind === "group" ? <GroupCard group={card.group} /> : <NodeCard node={card.node} isSelected={isSelected} />}
      {/* Without them in the page, edges have no ends once the node was measured. */}
      <Handle type="target" position={Position.Left} className={styles.handle ?? ""} isConnectable={false} />
      <Handle type="source" position={Position.Right} className={styles.handle ?? ""} isConnectable={false} />
    </>
  );
});

function NodeCard({ node, isSelected }: { node: GraphNode; isSelected: boolean }) {
  const { Content } = useContext(PartsContext);
  const { id, title, subtitle, icon, state, stateLabel, badge, mark, markTone, isFaded } = node;
  return (
    <div
      id={labelIdOf(id)}
      className={styles.card}
      data-state={state}
      data-selected={isSelected || undefined}
      data-faded={isFaded || undefined}
      data-mark={mark === undefined ? undefined : (markTone ?? "soft")}
    >
      <div className={styles.title}>
        {icon && <Icon name={icon} size={14} />}
        <span title={title}>{title}</span>
        {badge !== undefined && <small>{badge}</small>}
        {state && <StateMark state={state} {...(stateLabel !== undefined && { label: stateLabel })} compact />}
      </div>
      {Content ? <Content node={node} /> : <div className={styles.subtitle}>{subtitle}</div>}
      {mark !== undefined && <span className={styles.mark}>{mark}</span>}
      <More id={id} side="before" count={node.hiddenBefore} />
      <More id={id} side="after" count={node.hiddenAfter} />
    </div>
  );
}

function GroupCard({ group }: { group: Group }) {
  const text = useWords(graphWords);
  const shared = useWords(common);
  const { number } = useFormats();
  return (
    <div id={labelIdOf(group.id)} className={styles.card} data-group>
      <div className={styles.title}>
        <span title={`${group.first.title} … ${group.last.title}`}>
          {group.first.title} … {group.last.title}
        </span>
      </div>
      <div className={styles.subtitle}>
        <span>{text.nodes(number(group.size))}</span>
        {group.counts.map(([state, count]) => (
          <span key={state} className={styles.count}>
            <StateMark state={state} label={number(count)} />
            <span className="visually-hidden">{shared[state]}</span>
          </span>
        ))}
      </div>
    </div>
  );
}

function More({ id, side, count }: { id: string; side: Side; count: number | undefined }) {
  const text = useWords(graphWords);
  const { onMore } = useContext(PartsContext);
  if (count === undefined || count === 0) return null;
  const label = side === "before" ? text.moreBefore(count) : text.moreAfter(count);
  if (!onMore) {
    return (
      <span className={styles.more} data-side={side} title={label}>
        +{count}
      </span>
    );
  }
  return (
    <button
      type="button"
      // Dragging the graph must not begin on it.
      className={`${styles.more} nopan`}
      data-side={side}
      tabIndex={-1}
      aria-label={label}
      title={label}
      onClick={(event) => {
        event.stopPropagation();
        onMore(id, side);
      }}
    >
      +{count}
    </button>
  );
}
