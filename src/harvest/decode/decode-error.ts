/** A body that is not what the definition says: not well-formed, too deep, or of another shape. */
export class DecodeError extends Error {
  override readonly name = "DecodeError";
}
