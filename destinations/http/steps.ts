import type { TestStep } from '../destination.ts';
import { DestinationError } from '../errors.ts';
import type { HttpConfig } from '../http.ts';
import { post } from './send.ts';

export const httpSteps: readonly TestStep<HttpConfig>[] = [
  {
    name: 'Reach the receiver',
    description: 'Ensure the URL may be reached and takes a batch for this token, by one without events.',
    async run(config, surroundings, signal) {
      try {
        const body = Buffer.from(JSON.stringify({ api_key: config.token, batch: [] }));
        await post(config, surroundings, body, signal);
        return undefined;
      } catch (error) {
        if (!(error instanceof DestinationError)) throw error;
        // PostHog has nothing against the token but refuses a batch without events.
        if (error.code === 'rejected' && /answered 400.*(empty|no event)/i.test(error.message))
          return undefined;
        return error.message;
      }
    },
  },
];
