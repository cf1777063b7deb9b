import type { RouteOptions } from 'fastify';
import { z } from 'zod';
import type { App } from './dependencies.ts';
import { errors } from './errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The query parameters of the route. Undefined: it takes whatever it is given. */
    parameters?: z.ZodObject;
  }
}

/**
 * Query parameters that every route takes, because tools add them to whatever they ask for. They change nothing, except
 * where a route has one of the same name. `token` says which project `@current` is (access.ts).
 */
const EVERYWHERE = ['format', 'client_query_id', 'personal_api_key', 'token'] as const;

function parametersOf({ config, schema, method, url }: RouteOptions): z.ZodObject | undefined {
  const access = config?.access;
  // SDKs of many versions call these, and add what they like.
  if (access === undefined || access === 'public' || access.forSdks) return undefined;
  const own = schema?.querystring ?? z.object({});
  if (!(own instanceof z.ZodObject)) throw new Error(`${method} ${url}: its query parameters are no object`);
  return own;
}

/**
 * Has every route refuse query parameters that it does not know. A list that ignored a misspelt filter would show
 * everything, and a deletion that ignored a wish would do half of it.
 */
export function refuseUnknownParameters(app: App): void {
  app.addHook('onRoute', (route) => {
    const parameters = parametersOf(route);
    if (!parameters) return;
    // A route may have a rule of its own for names that it does not list.
    const isOpen = parameters.def.catchall !== undefined;
    route.schema = { ...route.schema, querystring: isOpen ? parameters : parameters.strict() };
    route.config = { ...route.config, parameters };
  });
  // The key has been read by now, and links to other pages are made from the URL.
  app.addHook('preValidation', async ({ query, routeOptions }) => {
    const { parameters } = routeOptions.config;
    if (!parameters) return;
    const given = query as Record<string, unknown>;
    for (const name of EVERYWHERE) {
      if (!(name in given) || name in parameters.shape) continue;
      if (name === 'format' && given[name] !== 'json') {
        throw errors.validation('invalid_choice', 'This answer has the format "json" only.', name);
      }
      delete given[name];
    }
  });
}
