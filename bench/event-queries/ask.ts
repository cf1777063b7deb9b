import { BEGIN, OPEN } from './dataset.ts';

/** What the API says of a query, in milliseconds. */
export interface Answer {
  rows: number;
  compile: number;
  run: number;
}

export interface Ask {
  (query: string): Promise<Answer>;
  /** Reads the result as a file. */
  file(query: string, format: string): Promise<Buffer>;
}

/** Asks the API of a port, with the key of a project. */
export function asking(port: number, { projectId, key }: { projectId: number; key: string }): Ask {
  const post = async (query: string, format?: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/projects/${projectId}/query/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: { kind: 'HogQLQuery', query }, ...(format && { format }) }),
    });
    if (answer.status !== 200) throw new Error(`${query}: ${await answer.text()}`);
    return answer;
  };
  const ask = async (query: string) => {
    const body = (await (await post(query)).json()) as {
      results: unknown[];
      timings: { k: string; t: number }[];
    };
    const parts = Object.fromEntries(body.timings.map(({ k, t }) => [k, t * 1000]));
    return { rows: body.results.length, compile: parts.compile ?? 0, run: parts.run ?? 0 };
  };
  return Object.assign(ask, {
    file: async (query: string, format: string) =>
      Buffer.from(await (await post(query, format)).arrayBuffer()),
  });
}

/** A range of this length anywhere in the sealed weeks. */
export function within(length: number): [number, number] {
  const from = BEGIN + Math.random() * (OPEN - BEGIN - length);
  return [from, from + length];
}

/** An instant, as HogQL reads it in UTC. */
export const textOf = (at: number): string => new Date(at).toISOString().slice(0, 19).replace('T', ' ');

export const quantile = (times: readonly number[], share: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * share))] ?? Number.NaN;

export const shown = (ms: number): string => ms.toFixed(1);
