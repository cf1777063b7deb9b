import { z } from 'zod';
import type { Fields } from '../../values/marked-secrets.ts';
import { readHost } from '../rules/hosts.ts';
import { INTEGRATION_LIMITS } from '../rules/limits.ts';
import type { Placeholder, Signing } from '../rules/substitution.ts';

/** The configuration of an integration as plain JSON, with keys as in the API. */
export type RawConfig = Record<string, unknown>;
/** What programs may use: a value by its name. */
export type Values = Record<string, Pick<Placeholder, 'value' | 'form'>>;

/** Everything about one kind of integration. */
export interface Kind<Config> {
  /** The name in the API. */
  kind: string;
  title: string;
  /** The keys of the configuration. The schema validates, types and documents them, and marks secrets. */
  fields: z.ZodType<Config> & Fields;
  /** The hosts to which the secrets may go. Whoever changes them must send the secrets again. */
  hosts(config: Config): readonly string[];
  /** What programs may put into requests. */
  values(config: Config): Values;
  /** How requests are signed with secrets that never leave. */
  signing?(config: Config): Signing;
  /** What answers show beside the configuration. It is read from secrets, and contains none. */
  derived?(config: Config): RawConfig;
  /** What the integration is called if nobody named it. It is given what answers show. */
  displayName?(config: Partial<Config>): string | undefined;
}

/** Marks a key as a secret. A secret is stored, but no answer and no message contains it. */
export function secret<T extends z.ZodType>(type: T): T {
  return type.meta({ secret: true }) as T;
}

const LONGEST_SECRET = 4096;

/** A key or token. It has no spaces, and fits into a header. */
export const token = (description: string) =>
  secret(
    z
      .string()
      .trim()
      .min(1)
      .max(LONGEST_SECRET)
      .regex(/^[\x21-\x7e]+$/, 'It must consist of visible ASCII characters without spaces.'),
  ).describe(description);

/** A text of one line. */
export const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .refine((text) => !/\p{Cc}/u.test(text), 'It must not contain control characters.');

/** Keys that every kind has. */
export const common = {
  name: z.string().trim().max(400).optional().describe('What people call the integration.'),
};

/** The hosts of a kind that is for any service. */
export const hosts = z
  .array(z.string())
  .min(1)
  .max(INTEGRATION_LIMITS.hosts)
  .transform((entries, context) => {
    const read = entries.map(readHost);
    const wrong = read.indexOf(undefined);
    if (wrong >= 0) {
      context.addIssue({
        code: 'custom',
        path: [wrong],
        message: 'Not a host. Use a name, an address, or *. and a name with a dot, such as *.example.com.',
      });
    }
    return [...new Set(read.filter((one) => one !== undefined))];
  })
  .describe(
    'The only hosts to which the secrets may go: names, addresses, or `*.example.com`. Whoever changes them sends the secrets again.',
  );

/** The address of an incoming webhook, which is a secret as a whole. */
export const webhookUrl = (allowed: readonly string[], example: string) =>
  secret(
    z
      .string()
      .trim()
      .min(1)
      .max(LONGEST_SECRET)
      .refine((text) => isWebhook(text, allowed), {
        // The message does not repeat the URL: whoever knows it can post.
        error: `It must be an https URL of ${allowed.join(' or ')}, without user, password and port.`,
      }),
  ).describe(`URL of the webhook, such as ${example}. The whole URL is a secret.`);

function isWebhook(text: string, allowed: readonly string[]): boolean {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' || url.port !== '' || url.username !== '' || url.password !== '')
    return false;
  return allowed.some((one) =>
    one.startsWith('*.') ? url.hostname.endsWith(one.slice(1)) : url.hostname === one,
  );
}

/** The host of a webhook, to which alone it may be sent. */
export const webhookHost = (url: string): string[] => [new URL(url).hostname];

export const text = (value: string) => ({ value, form: 'text' as const });
export const wholeUrl = (value: string) => ({ value: new URL(value).href, form: 'url' as const });
/** The value of the header Authorization. */
export const bearerHeader = (value: string) => text(`Bearer ${value}`);
export const basicHeader = (user: string, password: string) =>
  text(`Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`);
