/**
 * OpenTelemetry traces, on when an endpoint is configured. The SDK is loaded only then, because it takes tens
 * of megabytes. All other code uses `@opentelemetry/api`, which does nothing until a tracer is set.
 */
import { context, propagation, type Span, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";

/** For all attempts to send one batch; also bounds how long an unreachable collector delays the end of the process. */
const EXPORT_TIMEOUT_MS = 3_000;

const tracer = trace.getTracer("millrace");

/** Starts exporting; returns the function that flushes and ends it. */
export async function startTracing(options: { endpoint: string; serviceName: string }): Promise<() => Promise<void>> {
  const [{ NodeTracerProvider, BatchSpanProcessor }, { OTLPTraceExporter }, { resourceFromAttributes }] =
    await Promise.all([
      import("@opentelemetry/sdk-trace-node"),
      import("@opentelemetry/exporter-trace-otlp-http"),
      import("@opentelemetry/resources"),
    ]);
  const url = new URL("v1/traces", options.endpoint.endsWith("/") ? options.endpoint : `${options.endpoint}/`);
  const provider = new NodeTracerProvider({
    // The SDK does not read the name from the environment by itself.
    resource: resourceFromAttributes({ "service.name": options.serviceName, "telemetry.sdk.language": "nodejs" }),
    spanProcessors: [
      new BatchSpanProcessor(new OTLPTraceExporter({ url: url.href, timeoutMillis: EXPORT_TIMEOUT_MS })),
    ],
  });
  provider.register(); // Also sets the W3C propagator and the async context.
  return async () => {
    await provider.shutdown();
    trace.disable();
    context.disable();
    propagation.disable();
  };
}

/** The span of a request, as a child of the caller's if its headers carry a W3C trace context. */
export function startRequestSpan(
  name: string,
  headers: Record<string, unknown>,
  attributes: Record<string, string>,
): Span {
  const parent = propagation.extract(context.active(), headers);
  return tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
}

export function inSpan<T>(span: Span, work: () => T): T {
  return context.with(trace.setSpan(context.active(), span), work);
}

export function endRequestSpan(span: Span, status: number): void {
  span.setAttribute("http.response.status_code", status);
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

/** Records the span of a statement that has ended. */
export function recordStatement(name: string, seconds: number): void {
  if (!trace.getActiveSpan()) return;
  const end = Date.now();
  tracer.startSpan(`db ${name}`, { kind: SpanKind.CLIENT, startTime: end - seconds * 1000 }).end(end);
}
