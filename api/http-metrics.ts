import type { FastifyInstance } from 'fastify';
import { DurationHistogram } from '../telemetry/durations.ts';
import type { Registry } from '../telemetry/metrics.ts';

/** Creates the metric for the duration of requests by method, route and status. */
export function createRequestDurations(registry: Registry): DurationHistogram {
  return new DurationHistogram({
    name: 'sluice_http_request_seconds',
    help: 'Duration of HTTP requests by method, route and status.',
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registry,
  });
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The milliseconds after which an answer began that has no end in sight. How long such an answer is says nothing. */
    begunAfter?: number;
  }
}

export function measureRequests(app: FastifyInstance, durations: DurationHistogram): void {
  app.addHook('onResponse', (request, reply, done) => {
    durations
      .series({
        method: request.method,
        route: request.routeOptions.url ?? 'unknown',
        status: String(reply.statusCode),
      })
      .observe((request.begunAfter ?? reply.elapsedTime) / 1000);
    done();
  });
}
