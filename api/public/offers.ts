import type { Listener } from '../../db/listen.ts';
import { errors } from '../errors.ts';
import type { Answer } from './answer.ts';
import { type Incoming, lastOf, type Query } from './exchange.ts';
import type { ProjectKeys } from './project-keys.ts';
import { createRemembered } from './remembered.ts';

/** Short, so that a change reaches browsers soon. */
const HEADERS = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'public, max-age=60'];

/** A list of each project that browsers ask for, in memory until it changes. */
export interface Offers<T> {
  of(projectId: number): readonly T[] | Promise<readonly T[]>;
  close(): void;
}

/** Remembers a list of each project. Postgres names a project on the channel when its list has changed. */
export function createOffers<T>(
  listener: Pick<Listener, 'subscribe' | 'isListening'>,
  channel: string,
  read: (projectId: number) => Promise<T[]>,
): Offers<T> {
  const lists = createRemembered<T[]>({
    ...{ channel, listener },
    async read(projectId) {
      const value = await read(Number(projectId));
      return { value, bytes: JSON.stringify(value).length };
    },
  });
  return {
    of(projectId) {
      const list = lists.of(String(projectId));
      return list instanceof Promise ? list.then((one) => one ?? []) : (list ?? []);
    },
    close: () => lists.close(),
  };
}

/** Finds the project whose key the query has. */
export async function projectInQuery(keys: ProjectKeys, { request }: Incoming): Promise<number> {
  const query = request.query as Query;
  const token = (lastOf(query.token) || lastOf(query.api_key) || '').trim();
  if (token === '') throw errors.notAuthenticated();
  return (await keys.authenticate(token, request.ip)).id;
}

/** Answers with a list of offers. */
export const offersAnswer = (body: object): Answer => ({
  status: 200,
  body: JSON.stringify(body),
  headers: HEADERS,
});
