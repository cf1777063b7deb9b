import { beforeAll, expect } from '@jest/globals';
import { resolveIntegration } from '../../integrations/reads/resolve.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

/** The text of every secret contains this. */
export const CANARY = 'Canary1234';
const KEY_FILE = {
  type: 'service_account',
  project_id: 'lake',
  private_key_id: 'x',
  private_key: `-----BEGIN PRIVATE KEY-----\n${CANARY}\n-----END PRIVATE KEY-----\n`,
  client_email: 'robot@lake.iam.gserviceaccount.com',
  token_uri: 'https://oauth2.googleapis.com/token',
};

export interface Example {
  kind: string;
  config: Record<string, unknown>;
  /** What answers show of it. */
  shown: Record<string, unknown>;
  display_name: string;
  /** An allowed URL, and one that is not. */
  url?: string;
}

export const EXAMPLES: Example[] = [
  {
    ...{ kind: 'slack', config: { access_token: `xoxb-${CANARY}` }, shown: {}, display_name: 'Slack' },
    url: 'https://slack.com/api/chat.postMessage',
  },
  {
    kind: 'discord',
    config: { webhook_url: `https://discord.com/api/webhooks/1/${CANARY}`, name: 'Team' },
    shown: { name: 'Team' },
    display_name: 'Team',
  },
  {
    kind: 'microsoft-teams',
    config: { webhook_url: `https://acme.webhook.office.com/webhookb2/${CANARY}` },
    shown: {},
    display_name: 'Microsoft Teams',
  },
  {
    ...{ kind: 'hubspot', config: { access_token: `pat-${CANARY}` }, shown: {}, display_name: 'HubSpot' },
    url: 'https://api.hubapi.com/crm/v3/objects/contacts',
  },
  {
    kind: 'customerio-track',
    config: { site_id: 'site', api_key: CANARY, region: 'eu' },
    shown: { site_id: 'site', region: 'eu' },
    display_name: 'site',
    url: 'https://track-eu.customer.io/api/v2/entity',
  },
  {
    kind: 'customerio-app',
    config: { api_key: CANARY },
    shown: { region: 'us' },
    display_name: 'Customer.io (App API)',
    url: 'https://api.customer.io/v1/send/email',
  },
  {
    kind: 'bearer',
    config: { hosts: ['API.example.com', '*.example.org', 'api.example.com'], access_token: CANARY },
    shown: { hosts: ['api.example.com', '*.example.org'] },
    display_name: 'api.example.com',
    url: 'https://eu.example.org/x',
  },
  {
    kind: 'basic',
    config: { hosts: ['10.0.0.5'], username: 'anna', password: `pass ${CANARY}` },
    shown: { hosts: ['10.0.0.5'], username: 'anna' },
    display_name: 'anna at 10.0.0.5',
    url: 'http://10.0.0.5:8080/x',
  },
  {
    kind: 'aws',
    config: {
      ...{ region: 'eu-central-1', access_key_id: `AKIA${CANARY}`, secret_access_key: CANARY },
      session_token: `session-${CANARY}`,
    },
    shown: { region: 'eu-central-1' },
    display_name: 'AWS eu-central-1',
  },
  {
    kind: 'google-service-account',
    config: { key: KEY_FILE },
    shown: { client_email: KEY_FILE.client_email, project_id: 'lake' },
    display_name: KEY_FILE.client_email,
  },
];
export const exampleOf = (kind: string) => EXAMPLES.find((one) => one.kind === kind) as Example;

/** The API of integrations, with two tenants. `seen` has all answers to `ask`. */
export function integrationsForFile() {
  const api = apiForFile();
  const tenants = {} as { anna: Tenant; ben: Tenant };
  beforeAll(async () => {
    tenants.anna = await api.createTenant('Anna');
    tenants.ben = await api.createTenant('Ben');
  });

  const at = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/integrations/${rest}`;
  const seen: string[] = [];
  const ask = async (method: string, rest: string, body?: unknown, tenant = tenants.anna) => {
    const answer = await api.request(tenant, method, at(tenant, rest), body);
    seen.push(`${JSON.stringify(answer.headers)} ${answer.body}`);
    return answer;
  };
  const create = async (
    kind: string,
    config = exampleOf(kind).config,
    tenant = tenants.anna,
  ): Promise<number> => {
    const answer = await ask('POST', '', { kind, config }, tenant);
    expect([kind, answer.statusCode, answer.statusCode === 201 || answer.body]).toEqual([kind, 201, true]);
    return answer.json().id;
  };
  const resolve = (id: number, tenant = tenants.anna, seed = 'seed') =>
    resolveIntegration(api.pool, api.keyring, tenant.projectId, id, seed);

  return { api, tenants, at, ask, create, resolve, seen };
}
