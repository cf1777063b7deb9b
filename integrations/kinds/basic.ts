import { z } from 'zod';
import { basicHeader, common, hosts, type Kind, line, secret, text } from './kind.ts';

const fields = z.object({
  hosts,
  username: line(400)
    .refine((name) => !name.includes(':'), 'It must not contain a colon.')
    .describe('The user name.'),
  password: secret(line(4096)).describe('The password.'),
  ...common,
});

export const basic: Kind<z.output<typeof fields>> = {
  kind: 'basic',
  title: 'User name and password',
  fields,
  hosts: (config) => config.hosts,
  values: ({ username, password }) => ({
    password: text(password),
    authorization: basicHeader(username, password),
  }),
  displayName: (config) => `${config.username} at ${config.hosts?.[0]}`,
};
