/** What each drawn node shows. A card listens to its own entry only, so a live change of one node renders one card. */
import { createContext, useContext, useSyncExternalStore } from "react";
import { STATES, type State } from "../states/state.ts";
import type { GraphNode } from "./model.ts";

export interface Group {
  id: string;
  first: GraphNode;
  last: GraphNode;
  size: number;
  /** Nodes in each state, most urgent first. */
  counts: readonly (readonly [state: State, count: number])[];
}
export type Card = { kind: "node"; node: GraphNode } | { kind: "group"; group: Group };

export interface Cards {
  get(id: string): Card | undefined;
  isSelected(id: string): boolean;
  show(cards: ReadonlyMap<string, Card>, selected: string | undefined): void;
  subscribe(id: string, listener: () => void): () => void;
}

export function createCards(): Cards {
  let cards: ReadonlyMap<string, Card> = new Map();
  let selected: string | undefined;
  const listeners = new Map<string, Set<() => void>>();
  return {
    get: (id) => cards.get(id),
    isSelected: (id) => id === selected,
    show(given, nextSelected) {
      const changed = new Set<string>();
      const next = new Map<string, Card>();
      for (const [id, card] of given) {
        const before = cards.get(id);
        const isSame = before !== undefined && areEqual(before, card);
        next.set(id, isSame ? before : card);
        if (!isSame) changed.add(id);
      }
      if (selected !== nextSelected) for (const id of [selected, nextSelected]) if (id !== undefined) changed.add(id);
      cards = next;
      selected = nextSelected;
      for (const id of changed) for (const listener of listeners.get(id) ?? []) listener();
    },
    subscribe(id, listener) {
      const own = listeners.get(id) ?? new Set();
      listeners.set(id, own.add(listener));
      return () => {
        own.delete(listener);
        if (own.size === 0) listeners.delete(id);
      };
    },
  };
}

const CardsContext = createContext<Cards | undefined>(undefined);
export const CardsProvider = CardsContext.Provider;

function useCards(): Cards {
  const cards = useContext(CardsContext);
  if (!cards) throw new Error("a card is outside of a graph");
  return cards;
}

export function useCard(id: string): Card | undefined {
  const cards = useCards();
  return useSyncExternalStore(
    (listener) => cards.subscribe(id, listener),
    () => cards.get(id),
  );
}

export function useIsSelected(id: string): boolean {
  const cards = useCards();
  return useSyncExternalStore(
    (listener) => cards.subscribe(id, listener),
    () => cards.isSelected(id),
  );
}

/** The cards of the drawn nodes, of which some stand for several. */
export function cardsOf(
  nodes: ReadonlyMap<string, GraphNode>,
  groups: ReadonlyMap<string, readonly string[]>,
): Map<string, Card> {
  const cards = new Map<string, Card>();
  for (const [id, members] of groups) {
    const found = members.flatMap((member) => nodes.get(member) ?? []);
    const [first] = found;
    const last = found.at(-1);
    if (!first || !last) continue;
    if (found.length === 1) cards.set(id, { kind: "node", node: first });
    else cards.set(id, { kind: "group", group: { id, first, last, size: found.length, counts: countsOf(found) } });
  }
  return cards;
}

const URGENCY: readonly State[] = ["failed", "running", "stopped", "waiting", "success", "skipped"];

function countsOf(nodes: readonly GraphNode[]): Group["counts"] {
  const counts = new Map<State, number>();
  for (const { state } of nodes) if (state) counts.set(state, (counts.get(state) ?? 0) + 1);
  return URGENCY.filter((state) => STATES.includes(state)).flatMap((state) => {
    const count = counts.get(state);
    return count === undefined ? [] : [[state, count] as const];
  });
}

function areEqual(one: Card, other: Card): boolean {
  if (one.kind === "node") return other.kind === "node" && haveSameFields(one.node, other.node);
  if (other.kind !== "group") return false;
  return one.group.size === other.group.size && String(one.group.counts) === String(other.group.counts);
}

function haveSameFields(one: object, other: object): boolean {
  const entries = Object.entries(one);
  return (
    entries.length === Object.keys(other).length &&
    entries.every(([name, value]) => Object.is(value, (other as Record<string, unknown>)[name]))
  );
}
