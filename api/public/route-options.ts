import type { onRequestHookHandler } from 'fastify';
import type { z } from 'zod';
import { errorBody } from '../fields.ts';

/** Schemas of these routes describe only; the body is judged by capture/parse, faster and with more patience. */
const unchecked = () => (value: unknown) => ({ value });

export interface Description {
  summary: string;
  body?: z.ZodType;
  params?: z.ZodType;
  answer?: z.ZodType;
}

/** How a public route is set up whose `answer` ends every request before the framework would read its body. */
export function publicRoute(answer: onRequestHookHandler, description?: Description) {
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
    config: { access: 'public' as const },
    validatorCompiler: unchecked,
    schema,
    onRequest: answer,
    handler: () => {
      throw new Error('A capture route answers before its handler is reached.');
    },
  };
}
