import type { FastifyInstance, FastifyRequest } from 'fastify';
import { errors } from './errors.ts';

interface KnownPath {
  pattern: RegExp;
  methods: Set<string>;
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

type Refusal = (request: FastifyRequest) => Error;

/** Remembers the routes of an app, all that are made after this; tells a wrong method (405) from an unknown path. */
export function knowPaths(app: FastifyInstance): Refusal {
  const known = new Map<string, KnownPath>();
  app.addHook('onRoute', ({ url, method }) => {
    const entry = known.get(url) ?? { pattern: toPattern(url), methods: new Set<string>() };
    for (const one of [method].flat()) entry.methods.add(one);
    known.set(url, entry);
  });
  return (request) => {
    const pathname = request.url.split('?', 1)[0] as string;
    const methods = new Set<string>();
    for (const entry of known.values()) {
      if (entry.pattern.test(pathname)) for (const method of entry.methods) methods.add(method);
    }
    // Preflights are answered by the CORS hook on every path; a path is known by its other methods.
    methods.delete('OPTIONS');
    if (methods.size === 0 || methods.has(request.method)) return errors.notFound('Endpoint not found.');
    return errors.methodNotAllowed(request.method, [...methods, 'OPTIONS'].sort());
  };
}

/** Answers whatever no route answers: 405 with `Allow`, or 404. */
export function answerUnknownPaths(app: FastifyInstance, refusal: Refusal): void {
  // Before the body: nothing of it is read for a path that does not want it.
  app.addHook('onRequest', async (request) => {
    if (request.is404) throw refusal(request);
  });
  app.setNotFoundHandler(async (request) => {
    throw refusal(request);
  });
}
