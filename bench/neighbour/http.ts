import http from 'node:http';

export interface Ask {
  method?: string;
  path: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** Sends requests from one address. `ask` resolves with the status, or the code of the error, after the whole answer. */
export function client(port: number, localAddress: string) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  return {
    ask: ({ method = 'GET', path, headers = {}, body }: Ask): Promise<string> =>
      new Promise((resolve) => {
        const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
        const request = http.request(
          { host: '127.0.0.1', port, localAddress, agent, method, path, headers: { ...headers, ...length } },
          (response) => {
            response.resume();
            response.once('close', () => resolve(response.complete ? String(response.statusCode) : 'broken'));
          },
        );
        request.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
        request.end(body);
      }),
    close: () => agent.destroy(),
  };
}

export type Client = ReturnType<typeof client>;

/** Counts answers by what was asked and the status. */
export type Answers = Record<string, Record<string, number>>;

export function count(answers: Answers, kind: string, status: string): void {
  const statuses = answers[kind] ?? {};
  answers[kind] = statuses;
  statuses[status] = (statuses[status] ?? 0) + 1;
}

/** Is aborted when the benchmark tells this process that its time is over. */
export function timeIsOver(): AbortSignal {
  const over = new AbortController();
  process.once('SIGTERM', () => over.abort());
  return over.signal;
}

/** What a helper process of the benchmark is told at its start. */
export const task = <T>(): T => JSON.parse(process.env.NEIGHBOUR_TASK ?? '{}');
