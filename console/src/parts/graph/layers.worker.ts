/** Our own layout, away from the thread of the page. */
import { type LayoutGraph, layOutInLayers } from "./layers.ts";

self.addEventListener("message", ({ data }: MessageEvent<LayoutGraph>) => self.postMessage(layOutInLayers(data)));
