/**
 * A table of texts in the languages of the console. Each module has its own; the compiler checks that the languages have the same
 * keys and the same arguments.
 */
type Text = string | ((...values: never[]) => string);
export type WordTable = Readonly<Record<string, Text>>;
/** The same keys, with any text. */
export type Translated<Table extends WordTable> = {
  readonly [Key in keyof Table]: Table[Key] extends (...values: infer Values) => string
    ? (...values: Values) => string
    : string;
};
export interface Words<Table extends WordTable> {
  readonly en: Translated<Table>;
  readonly zh: Translated<Table>;
}

/** The text for a code that others write too; one that the table does not know is shown as it is. */
export function wordFor(text: Translated<WordTable>, name: string, code: string): string {
  const known = text[name];
  return typeof known === "string" ? known : code;
}

export function words<const Table extends WordTable>(en: Table, zh: Translated<Table>): Words<Table> {
  return { en: en as unknown as Translated<Table>, zh };
}
