/** Which content encodings a caller accepts, by its `Accept-Encoding` header (RFC 9110, section 12.5.3). */

/** Without a header only the content itself is sent: the caller may be a simple program. */
export function acceptsEncoding(header: string | string[] | undefined, encoding: string): boolean {
  const entries = String(header ?? "")
    .toLowerCase()
    .split(",")
    .map((entry) => entry.split(";").map((part) => part.trim()));
  const entry = entries.find(([name]) => name === encoding) ?? entries.find(([name]) => name === "*");
  return entry !== undefined && !/^q=0(\.0*)?$/.test(entry[1] ?? "");
}
