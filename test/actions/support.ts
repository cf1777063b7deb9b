import { beforeAll, expect } from '@jest/globals';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

/** An action as the API shows it. */
export interface Shown {
  id: number;
  name: string | null;
  bytecode: Bytecode;
  last_calculated_at: string;
  [field: string]: unknown;
}

/** A step that says nothing. */
export const NOTHING = {
  event: null,
  properties: null,
  selector: null,
  tag_name: null,
  text: null,
  text_matching: null,
  href: null,
  href_matching: null,
  url: null,
  url_matching: null,
};

/** The API of actions, with two tenants. */
export function actionsForFile() {
  const api = apiForFile();
  const tenants = {} as { anna: Tenant; ben: Tenant };
  beforeAll(async () => {
    tenants.anna = await api.createTenant('Anna');
    tenants.ben = await api.createTenant('Ben');
  });

  const at = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/actions/${rest}`;
  const ask = (method: string, rest: string, body?: unknown, tenant = tenants.anna) =>
    api.request(tenant, method, at(tenant, rest), body);

  async function create(body: object, tenant = tenants.anna): Promise<Shown> {
    const answer = await ask('POST', '', body, tenant);
    expect([answer.statusCode, answer.statusCode === 201 || answer.body]).toEqual([201, true]);
    return answer.json();
  }

  return { api, tenants, at, ask, create };
}
