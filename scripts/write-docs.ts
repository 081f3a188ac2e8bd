/** `npm run docs`: writes the generated parts of the documentation. */
import { readFileSync, writeFileSync } from "node:fs";
import { GENERATED, withPart } from "./generated-docs.ts";

for (const { file, part, make } of GENERATED) {
  const text = readFileSync(file, "utf8");
  const fresh = withPart(text, part, make());
  if (fresh !== text) writeFileSync(file, fresh);
  console.log(`${file}: ${fresh === text ? "up to date" : "written"}`);
}
