import { z } from 'zod';
import { bearerHeader, common, hosts, type Kind, text, token } from './kind.ts';

const fields = z.object({ hosts, access_token: token('The token.'), ...common });

export const bearer: Kind<z.output<typeof fields>> = {
  kind: 'bearer',
  title: 'Bearer token',
  fields,
  hosts: (config) => config.hosts,
  values: ({ access_token }) => ({
    access_token: text(access_token),
    authorization: bearerHeader(access_token),
  }),
  displayName: (config) => config.hosts?.[0],
};
