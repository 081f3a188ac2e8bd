/**
 * Compiles schemas when they are first used, and each text once. There are several schemas for each of some hundred routes, a process
 * uses few of them, and many are equal: compiling all took half of the CPU time of a start. A test checks that each can be
 * compiled.
 */
type Compiled<Input, Output> = (input: Input) => Output;
export type CompileWhenUsed<Input, Output> = (
  schema: unknown,
  compile: () => Compiled<Input, Output>,
) => Compiled<Input, Output>;

/** One of these for each way to compile: two ways give different functions for one schema. */
export function createWhenUsed<Input, Output>(): CompileWhenUsed<Input, Output> {
  const byText = new Map<string, Compiled<Input, Output>>();
  return (schema, compile) => {
    let compiled: Compiled<Input, Output> | undefined;
    return (input) => {
      if (!compiled) {
        const text = JSON.stringify(schema);
        compiled = byText.get(text) ?? compile();
        byText.set(text, compiled);
      }
      return compiled(input);
    };
  };
}
