import type { RouteShorthandOptions } from 'fastify';
import type { z } from 'zod';
import { errorBody } from '../schemas/fields.ts';

/** Browsers of any site send here, older clients with cookies, and with whatever headers tracing tools add. */
const CORS = {
  origin: true,
  credentials: true,
  methods: ['GET', 'HEAD', 'POST', 'OPTIONS'],
  maxAge: 86_400,
  strictPreflight: false,
  optionsSuccessStatus: 200,
};

/** Schemas of these routes describe only; the body is judged by capture/parse, faster and with more patience. */
const unchecked = () => (value: unknown) => ({ value });

/** How a public route is set up; without a description it is left out of the documentation. */
export function publicRoute(description?: {
  summary: string;
  body?: z.ZodType;
  params?: z.ZodType;
  answer?: z.ZodType;
}): RouteShorthandOptions {
  const schema = description
    ? {
        tags: ['capture'],
        summary: description.summary,
        ...(description.body ? { body: description.body } : {}),
        ...(description.params ? { params: description.params } : {}),
        ...(description.answer ? { response: { 200: description.answer, 401: errorBody } } : {}),
      }
    : { hide: true };
  return {
    config: { access: 'public', cors: CORS },
    // Headers for pages; events are answered with two words.
    helmet: false,
    validatorCompiler: unchecked,
    schema,
  } as RouteShorthandOptions;
}
