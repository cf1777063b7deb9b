import type { FastifyInstance, FastifyRequest } from 'fastify';
import { errors } from './errors.ts';

interface KnownPath {
  pattern: RegExp;
  methods: Set<string>;
  /** How much of the path may be anything. */
  parameters: number;
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
  /** What is wrong with a request that no route answers: 405 with `Allow`, or 404. */
  refusal(request: FastifyRequest): Error;
  /** Whether the router took the request for one to a parameter's path, though its path has a route of its own. */
  isMistaken(request: FastifyRequest): boolean;
}

/** Remembers the routes of an app, all that are made after this; tells a wrong method (405) from an unknown path. */
export function knowPaths(app: FastifyInstance): KnownPaths {
  const known = new Map<string, KnownPath>();
  /** Paths with parameters, and the paths of their own that look like one: `things/:id` and `things/find`. */
  const namesakes = new Map<string, KnownPath[]>();
  const namesake = (url: string, path: KnownPath | undefined) => {
    if (path) namesakes.set(url, [...(namesakes.get(url) ?? []), path]);
  };
  app.addHook('onRoute', ({ url, method }) => {
    let entry = known.get(url);
    if (!entry) {
      entry = { pattern: toPattern(url), methods: new Set(), parameters: (url.match(/:|\*/g) ?? []).length };
      for (const [other, { pattern, parameters }] of known) {
        if (parameters > entry.parameters && pattern.test(url)) namesake(other, entry);
        else if (parameters < entry.parameters && entry.pattern.test(other)) namesake(url, known.get(other));
      }
      known.set(url, entry);
    }
    for (const one of [method].flat()) entry.methods.add(one);
  });
  return {
    refusal(request) {
      const pathname = request.url.split('?', 1)[0] as string;
      // Preflights are answered by the CORS hook on every path; a path is known by its other methods.
      const matching = [...known.values()].filter(
        ({ pattern, methods }) => pattern.test(pathname) && [...methods].some((one) => one !== 'OPTIONS'),
      );
      const fewest = Math.min(...matching.map((entry) => entry.parameters));
      const methods = new Set<string>();
      for (const entry of matching) {
        if (entry.parameters === fewest) for (const method of entry.methods) methods.add(method);
      }
      methods.delete('OPTIONS');
      if (methods.size === 0 || methods.has(request.method)) return errors.notFound('Endpoint not found.');
      return errors.methodNotAllowed(request.method, [...methods, 'OPTIONS'].sort());
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

/** Answers whatever no route answers. */
export function answerUnknownPaths(app: FastifyInstance, paths: KnownPaths): void {
  // Before the body: nothing of it is read for a path that does not want it.
  app.addHook('onRequest', async (request) => {
    // The router takes `GET things/find` for the thing called find, if find has no GET.
    if (request.is404 || paths.isMistaken(request)) throw paths.refusal(request);
  });
  app.setNotFoundHandler(async (request) => {
    throw paths.refusal(request);
  });
}
