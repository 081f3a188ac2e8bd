/** A whole Millrace shown at work: a story from source to subscriber, played on this machine and then checked. */
export { openHouse } from "./house.ts";
export { playDemo } from "./play.ts";
