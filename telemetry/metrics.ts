import { createServer, type Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export { Counter, Gauge, Histogram, type Registry };

/** The metrics of one process. */
export function createRegistry(processName: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process: processName });
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** Serves `GET /metrics` on a separate port, which users do not reach. The caller leaves it out if the port is 0. */
export async function serveMetrics(
  registry: Registry,
  options: { host: string; port: number },
): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404).end('The metrics are at GET /metrics.\n');
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      (error: Error) => response.writeHead(500).end(`${error.message}\n`),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        error.code === 'EADDRINUSE'
          ? new Error(
              `Port ${options.port} (SLUICE_METRICS_PORT) is in use by another program; free it or set another one.`,
            )
          : error,
      );
    });
    server.listen(options.port, options.host, resolve);
  });
  return server;
}

/** Adds up a number that grows with every request, and passes the sum to its counter when the metrics are read. */
export class Tally {
  #waiting = 0;

  add(count: number): void {
    this.#waiting += count;
  }

  /** Call it in the `collect` of the counter. */
  tell<T extends string>(counter: Counter<T>, labels: Partial<Record<T, string>>): void {
    counter.inc(labels, this.#waiting);
    this.#waiting = 0;
  }
}
