/** Who sends an event: the catalog itself, whose events are operations on metadata, or an engine that moves data. */
export type Source = "GRAVITINO" | "COMPUTE_ENGINE";
