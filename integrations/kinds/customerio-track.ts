import { z } from 'zod';
import { basicHeader, common, type Kind, line, text, token } from './kind.ts';

const fields = z.object({
  site_id: line(200).describe('Site ID of the workspace.'),
  api_key: token('Track API key.'),
  region: z.enum(['us', 'eu']).default('us').describe('Where the workspace is.'),
  ...common,
});

export const customerioTrack: Kind<z.output<typeof fields>> = {
  kind: 'customerio-track',
  title: 'Customer.io (Track API)',
  fields,
  hosts: ({ region }) => [region === 'eu' ? 'track-eu.customer.io' : 'track.customer.io'],
  values: ({ site_id, api_key }) => ({
    api_key: text(api_key),
    authorization: basicHeader(site_id, api_key),
  }),
  displayName: ({ site_id }) => site_id,
};
