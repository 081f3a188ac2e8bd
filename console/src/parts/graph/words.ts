/** Texts of graphs. */
import { words } from "../../words/table.ts";

export const graphWords = words(
  {
    node: "node",
    keys: "Enter opens the node. Left and right follow the edges, up and down move within a layer.",
    zoomIn: "Zoom in",
    zoomOut: "Zoom out",
    fit: "Fit to view",
    map: "Minimap",
    laying: "Arranging the graph",
    nodes: (n: string) => `${n} nodes`,
    folded: (drawn: string, all: string) => `${all} nodes, drawn as ${drawn}: similar and finished nodes are grouped.`,
    foldAgain: "Collapse",
    focused: (drawn: string, all: string) => `${drawn} of ${all} nodes, around`,
    depth: "Depth",
    moreBefore: (n: number) => `${n} more upstream`,
    moreAfter: (n: number) => `${n} more downstream`,
  },
  {
    node: "节点",
    keys: "按 Enter 打开节点，左右键沿边移动，上下键在同一层内移动。",
    zoomIn: "放大",
    zoomOut: "缩小",
    fit: "适应窗口",
    map: "图的缩略图",
    laying: "正在排列",
    nodes: (n) => `${n} 个节点`,
    folded: (drawn, all) => `共 ${all} 个节点，合并相似和已完成的节点后显示为 ${drawn} 个。`,
    foldAgain: "重新合并",
    focused: (drawn, all) => `共 ${all} 个节点，显示其中 ${drawn} 个，中心为`,
    depth: "深度",
    moreBefore: (n) => `上游还有 ${n} 个`,
    moreAfter: (n) => `下游还有 ${n} 个`,
  },
);
