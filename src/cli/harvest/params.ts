/** The flag `--param`, of commands that send the parameters of an endpoint. */
import { OperatorError } from "../../kernel/errors.ts";
import type { Flag, Given } from "../common/command.ts";
import { EXIT } from "../common/exit-codes.ts";

export const PARAM_FLAG: Flag = {
  usage: "--param <name=value>",
  description: "A parameter of the endpoint. May be given several times.",
  repeatable: true,
};

export function paramsOf(given: Given): Record<string, string> | undefined {
  const texts = given.texts("--param");
  const params: Record<string, string> = {};
  for (const text of texts) {
    const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === "") throw new OperatorError(`--param is \`${text}\`. Accepted: name=value.`, EXIT.usage);
    if (Object.hasOwn(params, name)) throw new OperatorError(`--param ${name} is given twice.`, EXIT.usage);
    params[name] = value;
  }
  return texts.length === 0 ? undefined : params;
}
