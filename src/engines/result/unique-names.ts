/** Makes column names unique, since rows are objects with the column names as keys. */

/** `a`, `a`, `b` as `a`, `a:1`, `b`, as DuckDB does. */
export function uniqueNames(names: readonly string[]): string[] {
  const taken = new Set<string>();
  return names.map((name) => {
    let unique = name;
    for (let number = 1; taken.has(unique); number += 1) unique = `${name}:${number}`;
    taken.add(unique);
    return unique;
  });
}
