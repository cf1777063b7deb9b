import { urlAddress } from '../address.ts';
import type { RowsDestination } from '../destination.ts';
import { DestinationError, networkError } from '../errors.ts';
import { limitsOf } from '../limits.ts';
import { type HttpConfig, httpFields } from './config.ts';
import { deliverByHttp } from './deliver.ts';
import { place, post } from './send.ts';

/** Sends events to the `/batch/` endpoint of another Sluice or of PostHog. */
export const http: RowsDestination<HttpConfig> = {
  kind: 'rows',
  types: ['HTTP'],
  fields: httpFields,
  // The whole of it: on a shared host, another path may be somebody else's.
  address: ({ url }) => ({ url: urlAddress(url) }),
  columns: 'capture',
  takesQuery: false,
  takesOpenEnd: true,
  docs: {
    once: 'the receiver stores each uuid once',
    address: ["the whole `url`, because another path of a shared host may be somebody else's"],
  },
  deliver: deliverByHttp,
  steps: [
    {
      name: 'Reach the receiver',
      description: 'Ensure the URL may be reached and takes a batch for this token, by one without events.',
      async run(config, surroundings, signal) {
        try {
          const body = Buffer.from(JSON.stringify({ api_key: config.token, batch: [] }));
          await post(config, surroundings, body, { signal });
          return undefined;
        } catch (error) {
          if (!(error instanceof DestinationError)) throw error;
          // PostHog accepts the token here, but refuses a batch without events.
          if (error.code === 'rejected' && /answered 400.*(empty|no event)/i.test(error.message))
            return undefined;
          return error.message;
        }
      },
    },
    {
      name: 'Check the token',
      description: 'Ensure the receiver has a project with this token. Nothing is sent to it.',
      async run(config, surroundings, signal) {
        // Receivers do not check the token of a batch without events. Browsers read the configuration of their
        // project here.
        const url = new URL(config.url);
        const base = /^(.*)\/batch\/?$/.exec(url.pathname)?.[1];
        if (base === undefined) return { skipped: 'The path of the URL is not that of /batch/' };
        url.pathname = `${base}/array/${encodeURIComponent(config.token)}/config`;
        url.search = '';
        try {
          const { status } = await surroundings.egress.fetch(url, {
            timeoutMilliseconds: limitsOf(surroundings).answer,
            ...(signal ? { signal } : {}),
          });
          if (status === 401 || status === 403 || status === 404)
            return `The receiver has no project with this token (it answered ${status})`;
          if (status === 200) return undefined;
          return { skipped: `The receiver does not tell: it answered ${status}` };
        } catch (error) {
          const known = networkError(error, place(config));
          if (known) return known.message;
          throw error;
        }
      },
    },
  ],
};
