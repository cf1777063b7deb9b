// How the invocations of a function are delivered. It belongs to the function, and not to one of its versions.
import { z } from 'zod';
import { refuse } from '../../refusals.ts';
import type { FunctionTypeName } from './types.ts';

const DAY = 86_400;

const status = z.union([z.int().min(400).max(599), z.enum(['4xx', '5xx'])], {
  error: 'A status is a number from 400 to 599, "4xx" or "5xx".',
});

const retry = z
  .strictObject({
    max_attempts: z
      .int()
      .min(1)
      .max(100)
      .meta({ description: 'How often a request is attempted at most. 1: it is never repeated.' }),
    max_age_seconds: z
      .int()
      .min(60)
      .max(30 * DAY)
      .meta({
        description:
          'How long after its event an invocation is repeated. By default a day. The first three attempts are made however ' +
          'late it is.',
      }),
    statuses: z
      .array(status)
      .max(200)
      .meta({
        description:
          'Which answers are repeated, in place of 408, 429, 500, 502, 503 and 504. A request without an answer is always ' +
          'repeated.',
      }),
  })
  .partial()
  .meta({ id: 'FunctionRetryPolicy' });
export type RetryPolicy = z.output<typeof retry>;

const batch = z
  .strictObject({
    max_batch: z.int().min(2).max(1_000).meta({ description: 'How many events go together at most.' }),
    max_wait_seconds: z
      .number()
      .min(0)
      .max(3_600)
      .default(1)
      .meta({ description: 'How long an event waits for others at most.' }),
  })
  .meta({
    id: 'FunctionBatchPolicy',
    description:
      'Events go together: the program runs once for several of them, and sees them as `items`. They stay together when they ' +
      'are repeated, under one idempotency key.',
  });
export type BatchPolicy = z.output<typeof batch>;

export const deliveryPolicy = z
  .strictObject({
    max_concurrency: z.int().min(1).max(1_000).meta({
      description: 'At most so many invocations of the function are in progress at once, in all workers.',
    }),
    rate_per_second: z.number().min(0.01).max(10_000).meta({
      description:
        'At most so many attempts begin in a second, in all workers. They begin at even distances.',
    }),
    retry,
    batch,
    ordering: z.enum(['none', 'distinct_id']).meta({
      description:
        '`distinct_id`: invocations of the same distinct id run one after the other, in the order in which they were ' +
        'queued. Those of other ids do not wait for them.',
    }),
  })
  .partial()
  .meta({
    id: 'FunctionDelivery',
    description:
      'How the invocations of a function are delivered. It is no part of its versions: a change counts at once, also for ' +
      'invocations that wait.',
  });
export type DeliveryPolicy = z.output<typeof deliveryPolicy>;

const DELIVERED: ReadonlySet<FunctionTypeName> = new Set(['destination', 'internal_destination']);

/** Refuses a policy for functions whose invocations do not wait in the queue. */
export function checkPolicy(
  type: FunctionTypeName,
  { delivery, paused }: { delivery?: DeliveryPolicy | null | undefined; paused?: boolean | undefined },
): void {
  if (delivery?.batch && delivery.ordering === 'distinct_id') {
    throw refuse.invalid('delivery', 'Batches have no order: leave out `batch` or `ordering`.');
  }
  if (delivery?.batch && type !== 'destination') {
    throw refuse.invalid('delivery', '`batch` is only for functions of type destination.');
  }
  if (DELIVERED.has(type)) return;
  const only = `only for functions of type ${[...DELIVERED].join(' and ')}, and this one has the type ${type}.`;
  if (delivery) throw refuse.invalid('delivery', `A policy of delivery is ${only}`);
  if (paused) throw refuse.invalid('paused', `\`paused\` is ${only}`);
}

/** A policy without any part is none. */
export const storedPolicy = (policy: DeliveryPolicy | null): DeliveryPolicy | null =>
  policy && Object.keys(policy).length > 0 ? policy : null;
