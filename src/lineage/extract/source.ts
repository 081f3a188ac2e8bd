/** The sender of an event: the catalog, whose events are operations on metadata, or an engine that moves data. */
export type Source = "GRAVITINO" | "COMPUTE_ENGINE";
