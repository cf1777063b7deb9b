import type { Listener } from '../../db/listen.ts';
import { errors } from '../errors.ts';
import type { Answer } from './answer.ts';
import { type Incoming, lastOf, type Query } from './exchange.ts';
import type { Lane } from './lane.ts';
import { createRemembered } from './remembered.ts';

/** Short, so that a change reaches browsers soon. */
const HEADERS = ['content-type', 'application/json; charset=utf-8', 'cache-control', 'public, max-age=60'];

export interface OffersOptions<T> {
  /** The channel on which Postgres names a project whose list has changed. */
  channel: string;
  read(projectId: number): Promise<T[]>;
}

/** A list that browsers ask for with the key of their project. */
export interface Offers<T> {
  /** The list of the project whose key the query has. */
  of(incoming: Incoming): Promise<T[]>;
  ofProject(projectId: number): Promise<T[]>;
  answer(body: object): Answer;
}

/** Serves a list of each project from memory until it changes. */
export function createOffers<T>(
  lane: Pick<Lane, 'keys' | 'onClose'>,
  { listener }: { listener: Pick<Listener, 'subscribe' | 'isListening'> },
  { channel, read }: OffersOptions<T>,
): Offers<T> {
  const lists = createRemembered<T[]>({
    ...{ channel, listener },
    async read(projectId) {
      const value = await read(Number(projectId));
      return { value, bytes: JSON.stringify(value).length };
    },
  });
  lane.onClose(() => lists.close());
  const ofProject = async (projectId: number) => (await lists.of(String(projectId))) ?? [];
  return {
    ofProject,
    async of({ request }) {
      const query = request.query as Query;
      const token = (lastOf(query.token) ?? lastOf(query.api_key) ?? '').trim();
      if (token === '') throw errors.notAuthenticated();
      const project = await lane.keys.authenticate(token, request.ip);
      return ofProject(project.id);
    },
    answer: (body) => ({ status: 200, body: JSON.stringify(body), headers: HEADERS }),
  };
}
