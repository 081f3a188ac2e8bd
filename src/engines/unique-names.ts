/** Columns by name need names that differ. */

/** `a`, `a`, `b` as `a`, `a:1`, `b`, which is how DuckDB names them. */
export function uniqueNames(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    let unique = name;
    for (let number = 1; taken.has(unique); number += 1) unique = `${name}:${number}`;
    taken.add(unique);
    return unique;
  });
}
