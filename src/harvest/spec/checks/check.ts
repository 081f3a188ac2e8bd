/** What a check of a merged policy gets and finds. Every check is a function of its own; the compiler runs all of them. */
import type { Template } from "../../../kernel/expressions/template.ts";
import type { Definition, EndpointDefinition } from "../../definition/definition.ts";
import type { Dictionary } from "../dictionary.ts";
import type { MergedPolicy, Origins } from "../layers.ts";
import type { Operation } from "../snapshot.ts";
import type { RequestTemplate } from "../templates.ts";

export interface CheckInput {
  definition: Definition;
  endpointName: string;
  endpoint: EndpointDefinition;
  /** The endpoint answers the records of ids, for another one that is harvested. */
  isDetail: boolean;
  /** Its requests name ids: a detail endpoint, or one whose known records are only updated (ExistingSet). */
  answersIds: boolean;
  operation: Operation;
  policy: MergedPolicy;
  origins: Origins;
  /** Those that compile. */
  templates: readonly (RequestTemplate & { template: Template })[];
  /** All templates compile, so what none of them reads is read nowhere. */
  allCompile: boolean;
  dictionary: Dictionary;
  /** Hosts with ports that may be called without https and at private addresses. */
  allowPrivate: readonly string[];
}

export interface Finding {
  field: string;
  /** A sentence. */
  reason: string;
  /** Where the value is, if not where the field's origin says. */
  table?: string;
}

export type Check = (input: CheckInput) => Iterable<Finding>;

/** The fields of the templates that read `variable.member`, or read the variable in a way that may. */
export function fieldsReading({ templates }: CheckInput, variable: string, member?: string): string[] {
  return templates
    .filter(({ template }) => {
      if (!template.references.has(variable)) return false;
      return member === undefined || (template.membersOf(variable)?.has(member) ?? true);
    })
    .map(({ field }) => field);
}
