import type { Listener } from '../../db/listen.ts';
import { errors } from '../errors.ts';
import { type Incoming, lastOf, type Query } from './exchange.ts';
import type { ProjectKeys } from './project-keys.ts';
import { createRemembered } from './remembered.ts';

/** Short, so that a change reaches browsers soon. */
export const OFFERS_CACHE = 'public, max-age=60';

/** What a project offers to browsers, in memory until it changes. */
export interface Offers<T> {
  of(projectId: number): T | Promise<T>;
  close(): void;
}

/** Remembers what each project offers. Postgres names a project on the channel when that has changed. */
export function createOffers<T>(
  listener: Pick<Listener, 'subscribe' | 'isListening'>,
  channel: string,
  read: (projectId: number) => Promise<{ value: T; bytes: number }>,
): Offers<T> {
  const offers = createRemembered<T>({
    ...{ channel, listener },
    read: (projectId) => read(Number(projectId)),
  });
  return {
    // There is a value for every project, be it an empty list.
    of: (projectId) => offers.of(String(projectId)) as T | Promise<T>,
    close: () => offers.close(),
  };
}

/** Finds the project whose key the query has. */
export async function projectInQuery(keys: ProjectKeys, { request }: Incoming): Promise<number> {
  const query = request.query as Query;
  const token = (lastOf(query.token) || lastOf(query.api_key) || '').trim();
  if (token === '') throw errors.notAuthenticated();
  return (await keys.authenticate(token, request.ip)).id;
}
