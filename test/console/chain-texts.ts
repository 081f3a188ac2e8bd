/** What tests of the editor of chains have in common: a chain, texts of it, and a person who writes one. */
import type { Page } from "playwright-core";

export const NODES = [
  { id: "extract", type: "noop" },
  { id: "load", type: "noop", dependsOn: ["extract"] },
];
export const textOf = (name: string, type: string) => `name: ${name}
nodes:
  - id: extract
    type: noop
  - id: load
    type: ${type}
    dependsOn: [extract]
  - id: report
    type: noop
    dependsOn: [load]
    if: params.region != "none"
`;

/** As a person who pastes a text over the present one. */
export async function write(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: /^Definition of|^New chain/ }).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(text);
}
