/** Texts of plots and heat maps. */
import { words } from "../../words/table.ts";

export const chart = words(
  {
    asTable: "Table",
    asPlot: "Plot",
    noPoints: "There are no values in this range.",
    plotKeys: "Arrow keys move through the points.",
    noValue: "no value",
    others: (n: number) => `${n} opTimes`,
    heatMapKeys: "Arrow keys move, Enter opens a cell, Shift and arrow keys select a range.",
    selected: (n: number) => `${n} selected`,
  },
  {
    asTable: "表格",
    asPlot: "曲线",
    noPoints: "此范围内没有数值。",
    plotKeys: "用方向键逐点查看。",
    noValue: "无数值",
    others: (n) => `${n} 个业务时间`,
    heatMapKeys: "方向键移动，回车打开单元格，按住 Shift 加方向键选择范围。",
    selected: (n) => `已选 ${n} 个`,
  },
);
