/** Removes the null fields of a row for a reply. */
export function withoutNulls<T extends object>(row: T) {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as {
    [Name in keyof T]: NonNullable<T[Name]>;
  };
}
