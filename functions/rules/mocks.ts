import { z } from 'zod';

/** An answer that stands for the one of a server, as long as requests are not sent. */
export const mockedAnswer = z
  .object({
    url: z.string().meta({ description: 'The beginning of the URLs for which the answer stands.' }),
    method: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'The method for which it stands. Default: all.' }),
    status: z.int().min(100).max(599).default(200),
    body: z.unknown().optional(),
  })
  .meta({ id: 'FunctionMockedAnswer' });
export type MockedAnswer = z.output<typeof mockedAnswer>;

export const mockedAnswers = z
  .array(mockedAnswer)
  .max(100)
  .default([])
  .meta({
    description:
      'Answers to requests that are not sent. The first one that fits counts; without one, a request is answered with 200 and ' +
      'an empty object.',
  });

/** Returns the answer to a request that is not sent. */
export function answerTo(answers: readonly MockedAnswer[], { method, url }: { method: string; url: string }) {
  const found = answers.find(
    (one) => url.startsWith(one.url) && (!one.method || one.method.toUpperCase() === method),
  );
  return found ? { status: found.status, body: found.body ?? null } : { status: 200, body: {} };
}
