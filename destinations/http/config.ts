import { z } from 'zod';
import { eventNames, secret } from '../config.ts';

export const httpFields = z
  .object({
    url: z.string().describe('The URL to post batches to, such as https://sluice.example.com/batch/.'),
    token: secret(z.string()).describe('The project key (phc_…) at the receiver.'),
    ...eventNames,
  })
  .superRefine(({ url, token }, context) => {
    const complain = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const parsed = URL.parse(url);
    // The message does not repeat the URL, since it may contain a password.
    if (!parsed) complain('url', 'Invalid destination URL: it is no URL');
    else if (!/^https?:$/.test(parsed.protocol))
      complain('url', `Invalid destination URL: ${parsed.protocol} is neither http: nor https:`);
    else if (parsed.username !== '' || parsed.password !== '')
      complain('url', 'Invalid destination URL: it holds a user name or password');
    else if (parsed.hash !== '') complain('url', 'Invalid destination URL: it holds a fragment');
    if (token.trim() === '') complain('token', "The following inputs are empty: ['token']");
  });

export type HttpConfig = z.output<typeof httpFields>;
