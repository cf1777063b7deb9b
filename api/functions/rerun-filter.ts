import { z } from 'zod';
import { MOST_REPEATED } from '../../functions/commands/rerun.ts';
import { ENDED_STATUSES, type EndedStatus } from '../../functions/rules/rerun.ts';
import { instant } from '../fields.ts';
import { millisecondsOf } from '../moment.ts';

/** What PostHog narrows a rerun by, and Sluice does not. It is refused: without it, more would run again. */
const REFUSED = ['error_kind', 'error_message_contains', 'max_attempts', 'max_count'] as const;

/** Which ended invocations run again, in the form of PostHog. */
export const rerunFilter = z
  .object({
    window_start: instant.meta({ description: 'Those that ended at or after this time.' }),
    window_end: instant.meta({ description: 'Those that ended before this time.' }),
    status: z
      .array(z.enum(['running', ...ENDED_STATUSES]))
      .min(1)
      .default(['failed'])
      .meta({
        description: 'Those with one of these. `running` adds none: what still runs does not run again.',
      }),
    invocation_ids: z.array(z.guid()).max(MOST_REPEATED).optional().meta({
      description: 'Only these.',
    }),
    error_kind: z.unknown().optional().meta({ description: 'Refused.' }),
    error_message_contains: z
      .unknown()
      .optional()
      .meta({ description: 'Refused. Use `search` without `filter`.' }),
    max_attempts: z.unknown().optional().meta({ description: 'Refused.' }),
    max_count: z.unknown().optional().meta({ description: 'Refused.' }),
  })
  .superRefine((filter, context) => {
    const refuse = (name: string, message: string) =>
      context.addIssue({ code: 'custom', path: [name], message, input: filter });
    for (const name of REFUSED) {
      if (filter[name] === undefined) continue;
      refuse(
        name,
        `\`${name}\` is not supported. Leave \`filter\` out, and use \`after\`, \`before\` and \`search\`.`,
      );
    }
    if (filter.status.every((one) => one === 'running')) {
      refuse('status', `What still runs does not run again. Name one of: ${ENDED_STATUSES.join(', ')}.`);
    }
    if (millisecondsOf(filter.window_start) >= millisecondsOf(filter.window_end)) {
      refuse('window_end', "'window_end' must be after 'window_start'.");
    }
  })
  .meta({ id: 'FunctionRerunFilter', description: 'Which ended ones, in the form of PostHog.' });

/** The statuses of a filter, each once, without what still runs. */
export const endedStatuses = ({ status }: z.output<typeof rerunFilter>): EndedStatus[] =>
  ENDED_STATUSES.filter((one) => status.includes(one));
