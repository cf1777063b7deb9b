import { z } from 'zod';
import { eventNames, secret } from '../config.ts';

export const httpFields = z
  .object({
    url: z.string().describe('URL that receives the batches, such as https://sluice.example.com/batch/.'),
    token: secret(z.string()).describe('Project key (phc_…) of the receiving project.'),
    ...eventNames,
  })
  .superRefine(({ url, token }, context) => {
    const complain = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const parsed = URL.parse(url);
    // The messages do not repeat the URL, because it may contain a password.
    if (!parsed) complain('url', 'Invalid destination URL: it is not a URL');
    else if (!/^https?:$/.test(parsed.protocol))
      complain('url', `Invalid destination URL: ${parsed.protocol} is neither http: nor https:`);
    else if (parsed.username !== '' || parsed.password !== '')
      complain('url', 'Invalid destination URL: it contains a user name or password');
    else if (parsed.hash !== '') complain('url', 'Invalid destination URL: it contains a fragment');
    if (token.trim() === '') complain('token', "The following inputs are empty: ['token']");
  });

export type HttpConfig = z.output<typeof httpFields>;
