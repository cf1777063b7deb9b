import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createRegistry, serveMetrics } from '../../telemetry/metrics.ts';
import { apiForFile } from '../support/api.ts';

const api = apiForFile();
let server: Awaited<ReturnType<typeof serveMetrics>>;
let port: number;

beforeAll(async () => {
  server = await serveMetrics(api.registry, { host: '127.0.0.1', port: 0 });
  port = (server.address() as AddressInfo).port;
});
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
});

describe('GET /metrics', () => {
  test('counts requests by route pattern and status, and knows nothing of ids and keys', async () => {
    const anna = await api.createTenant('Anna');
    await api.request(anna, 'GET', `/api/projects/${anna.projectId}/`);
    await api.request(null, 'GET', `/api/projects/${anna.projectId}/`);
    await api.request(anna, 'GET', '/api/no-such-thing');
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    const text = await response.text();
    expect(response.headers.get('content-type')).toContain('text/plain');
    const count = (route: string, status: number) =>
      text
        .split('\n')
        .find(
          (line) =>
            line.startsWith('sluice_http_request_seconds_count') &&
            line.includes(`route="${route}"`) &&
            line.includes(`status="${status}"`),
        )
        ?.split(' ')
        .at(-1);
    expect(count('/api/projects/:project_id/', 200)).toBe('1');
    expect(count('/api/projects/:project_id/', 401)).toBe('1');
    expect(count('unknown', 404)).toBe('1');
    expect(text).toContain('process_cpu_user_seconds_total');
    expect(text).not.toContain(anna.key);
    expect(text).not.toContain(anna.organizationId);
  });

  test('is the only thing on its port', async () => {
    expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST' })).status).toBe(404);
  });

  test('a port in use is named with its setting', async () => {
    await expect(serveMetrics(createRegistry('other'), { host: '127.0.0.1', port })).rejects.toThrow(
      `Port ${port} (SLUICE_METRICS_PORT) is in use by another program; free it or set another one.`,
    );
  });
});
