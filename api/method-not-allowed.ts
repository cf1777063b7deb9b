import type { FastifyInstance, FastifyRequest } from 'fastify';
import { errors } from './errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Nothing of this path is ever deleted. A DELETE gets 405 without a body, as the clients of such paths expect it. */
    isNeverDeleted?: true;
  }
}

interface KnownPath {
  pattern: RegExp;
  methods: Set<string>;
  /** The number of parameters in the path. */
  parameters: number;
  isNeverDeleted: boolean;
}

function toPattern(url: string): RegExp {
  const source = url
    .replace(/\/+$/, '')
    .split('/')
    .map((part) => {
      if (part === '*') return '.*';
      return part.startsWith(':') ? '[^/]+' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    })
    .join('/');
  return new RegExp(`^${source}/?$`);
}

export interface KnownPaths {
  /** Returns whether any route has the path of a request, with whichever method. */
  knows(request: FastifyRequest): boolean;
  /** Returns the error for a request that no route answers: 405 if the path has other methods, else 404. */
  refusal(request: FastifyRequest): Error;
  /** Returns whether the router matched a path with a parameter although the path has routes of its own. */
  isMistaken(request: FastifyRequest): boolean;
}

/** Records the routes that are added after this call, to tell a wrong method (405) from an unknown path (404). */
export function knowPaths(app: FastifyInstance): KnownPaths {
  const known = new Map<string, KnownPath>();
  /** For each path with parameters, other paths that match it: `things/find` matches `things/:id`. */
  const namesakes = new Map<string, KnownPath[]>();
  const namesake = (url: string, path: KnownPath | undefined) => {
    if (path) namesakes.set(url, [...(namesakes.get(url) ?? []), path]);
  };
  app.addHook('onRoute', ({ url, method, config }) => {
    let entry = known.get(url);
    if (!entry) {
      const parameters = (url.match(/:|\*/g) ?? []).length;
      entry = { pattern: toPattern(url), methods: new Set(), parameters, isNeverDeleted: false };
      for (const [other, { pattern, parameters: others }] of known) {
        if (others > parameters && pattern.test(url)) namesake(other, entry);
        else if (others < parameters && entry.pattern.test(other)) namesake(url, known.get(other));
      }
      known.set(url, entry);
    }
    for (const one of [method].flat()) entry.methods.add(one);
    entry.isNeverDeleted ||= config?.isNeverDeleted === true;
  });
  const pathnameOf = (request: FastifyRequest) => request.url.split('?', 1)[0] as string;
  // The CORS hook answers OPTIONS on every path, so OPTIONS alone does not make a path known.
  const isPathOf = ({ pattern, methods }: KnownPath, pathname: string) =>
    pattern.test(pathname) && [...methods].some((one) => one !== 'OPTIONS');
  return {
    knows(request) {
      const pathname = pathnameOf(request);
      return [...known.values()].some((path) => isPathOf(path, pathname));
    },
    refusal(request) {
      const pathname = pathnameOf(request);
      const matching = [...known.values()].filter((path) => isPathOf(path, pathname));
      const fewest = Math.min(...matching.map((entry) => entry.parameters));
      const methods = new Set<string>();
      for (const entry of matching) {
        if (entry.parameters === fewest) for (const method of entry.methods) methods.add(method);
      }
      methods.delete('OPTIONS');
      if (methods.size === 0 || methods.has(request.method)) return errors.notFound('Endpoint not found.');
      const refusal = errors.methodNotAllowed(request.method, [...methods, 'OPTIONS'].sort());
      const isSilent = matching.some((one) => one.parameters === fewest && one.isNeverDeleted);
      return isSilent && request.method === 'DELETE' ? refusal.withoutBody() : refusal;
    },
    isMistaken(request) {
      const others = namesakes.get(request.routeOptions.url ?? '');
      if (!others) return false;
      const pathname = request.url.split('?', 1)[0] as string;
      const own = others.find((entry) => entry.pattern.test(pathname));
      return own !== undefined && !own.methods.has(request.method);
    },
  };
}

/** Refuses requests that no route answers. */
export function answerUnknownPaths(app: FastifyInstance, paths: KnownPaths): void {
  // This hook runs before the body is read, so nothing of the body is read in vain.
  app.addHook('onRequest', async (request) => {
    // If `things/find` has no GET, the router takes `GET things/find` as a request for the thing with the id `find`.
    if (request.is404 || paths.isMistaken(request)) throw paths.refusal(request);
  });
  app.setNotFoundHandler(async (request) => {
    throw paths.refusal(request);
  });
}
