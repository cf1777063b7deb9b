import { expect, test } from '@jest/globals';
import { runProgram } from '../capture/client-programs.ts';
import { apiForFile, listenForFile } from '../support/api.ts';
import { EVERYBODY, storeFlag } from './support.ts';

const api = apiForFile();
const clients = listenForFile(api);

test.each(['posthog-js', 'posthog-js-1-200'])(
  '%s with nothing switched off asks for nothing that fails, and has nothing to warn of',
  async (name) => {
    const tenant = await api.createTenant(name);
    await storeFlag(api.pool, tenant.projectId, {
      key: 'on',
      filters: { ...EVERYBODY, payloads: { true: '{"size":5}' } },
    });
    clients.answers.length = 0;
    const { code, output } = await runProgram(process.execPath, [
      'quiet.mjs',
      name,
      clients.host,
      tenant.projectToken,
    ]);
    const paths = new Set(clients.answers.map((one) => one.replace(tenant.projectToken, 'KEY')));
    expect({ code, ...JSON.parse(output) }).toEqual({ code: 0, on: true, payload: { size: 5 }, written: [] });
    expect([...paths].filter((one) => !one.endsWith(' 200'))).toEqual([]);
    expect([...paths].some((one) => /^POST \/(?:flags|decide)\/ 200$/.test(one))).toBe(true);
    expect([...paths].some((one) => /^POST \/(?:e|i\/v0\/e)\/ 200$/.test(one))).toBe(true);
  },
  60_000,
);
