import net from 'node:net';
import { expect } from '@jest/globals';
import type { Tenant, TestApi } from '../support/api.ts';

export type ResultFormat = 'csv' | 'jsonl' | 'parquet' | 'arrow';

export const select = (query: string) => ({ kind: 'HogQLQuery', query });

/** Asks for a file with the result of a query. */
export const askForFile = (url: URL, tenant: Tenant, query: object, format: string, more: object = {}) =>
  fetch(new URL(`/api/projects/${tenant.projectId}/query/?format=${format}`, url), {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query, ...more }),
  });

/** A file, which has to come. */
export async function fileOf(url: URL, tenant: Tenant, query: string, format: ResultFormat): Promise<Buffer> {
  const answer = await askForFile(url, tenant, select(query), format);
  const content = Buffer.from(await answer.arrayBuffer());
  expect({ status: answer.status, ...(answer.status !== 200 && { told: content.toString() }) }).toEqual({
    status: 200,
  });
  return content;
}

/** An expression that is too large for its type in the row `n`. */
export const OVERFLOW = (row: number) => `toInt(if(n = ${row}, '9223372036854775807', '1')) + 1`;
/** A column with a text of some 700 bytes, another one in each row. */
export const LONG = "repeat(concat('n', toString(n)), 100) as text";
/** More rows than anybody waits for. */
export const ENDLESS = 300_000_000;
/** A query with so many rows, which are numbered. */
export function many(rows: number, columns: string): string {
  const numbers = (name: string, count: number) => `(select arrayJoin(range(0, ${count})) as n) as ${name}`;
  const most = rows / 100_000;
  return (
    `select n, ${columns} from (select (a.n * 100 + b.n) * ${most} + c.n as n ` +
    `from ${numbers('a', 1_000)} cross join ${numbers('b', 100)} cross join ${numbers('c', most)})`
  );
}

/** How many queries write a result at the moment. */
export async function running(api: Pick<TestApi, 'pool'>): Promise<number> {
  const { rows } = await api.pool.query(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and state = 'active' and query like 'begin read only%copy (%'`,
  );
  return rows[0].count;
}

export interface Raw {
  socket: net.Socket;
  /** Resolves with the first bytes of the answer. */
  first: Promise<unknown>;
  /** All bytes until the connection ended, and why if it ended badly. */
  closed: Promise<{ content: Buffer; error: (Error & { code?: string }) | undefined }>;
}

/** Asks over a connection of its own. */
export function raw(
  to: URL,
  tenant: Tenant,
  query: object,
  format: ResultFormat,
  version: '1.0' | '1.1' = '1.1',
): Raw {
  const socket = net.connect(Number(to.port), to.hostname);
  const body = JSON.stringify({ query });
  socket.write(
    `POST /api/projects/${tenant.projectId}/query/?format=${format} HTTP/${version}\r\nHost: ${to.host}\r\n` +
      `Authorization: Bearer ${tenant.key}\r\nContent-Type: application/json\r\nConnection: close\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  const chunks: Buffer[] = [];
  const first = Promise.withResolvers<void>();
  let error: Error | undefined;
  socket.on('data', (chunk) => {
    chunks.push(chunk);
    first.resolve();
  });
  socket.on('error', (one) => {
    error = one;
  });
  const closed = new Promise<{ content: Buffer; error: Error | undefined }>((resolve) => {
    socket.on('close', () => {
      first.resolve();
      resolve({ content: Buffer.concat(chunks), error });
    });
  });
  return { socket, first: first.promise, closed };
}

/** The body of an answer in chunks. */
export function bodyOf(content: Buffer): Buffer {
  let at = content.indexOf('\r\n\r\n') + 4;
  const parts: Buffer[] = [];
  for (;;) {
    const end = content.indexOf('\r\n', at);
    const size = Number.parseInt(content.toString('latin1', at, end), 16);
    if (!(size > 0)) {
      expect(content.toString('latin1', at)).toBe('0\r\n\r\n');
      return Buffer.concat(parts);
    }
    parts.push(content.subarray(end + 2, end + 2 + size));
    at = end + 4 + size;
  }
}
