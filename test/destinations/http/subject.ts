import { beforeAll } from '@jest/globals';
import { apiForFile, type Tenant } from '../../support/api.ts';
import { CANARY, type Subject } from '../subject.ts';

export function subject(): Subject {
  const api = apiForFile();
  let serial = 0;
  let url = '';
  let tenant: Tenant;
  beforeAll(async () => {
    url = await api.app.listen({ port: 0, host: '127.0.0.1' });
  });
  return {
    isAtomic: false,
    async config() {
      serial += 1;
      tenant = await api.createTenant(`receiver ${serial}`);
      return { url: `${url}/batch/`, token: tenant.projectToken };
    },
    wrongSecret: (config) => ({ ...config, token: `phc_${CANARY}` }),
    nobodyListens: (config, port) => ({ ...config, url: `http://127.0.0.1:${port}/batch/` }),
    async visible() {
      const { rows } = await api.pool.query('select uuid::text from events where project_id = $1', [
        tenant.projectId,
      ]);
      return rows.map((row) => row.uuid);
    },
  };
}
