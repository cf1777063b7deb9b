// Sends thousands of requests made from the OpenAPI document, good and bad, to a real API process.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../config.ts';
import { createSchedules } from '../../schedules/schedules.ts';
import { generateKey } from '../../secrets/envelope.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { createTenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { databaseForFile } from '../support/database.ts';
import { programsForFile } from '../support/programs.ts';
import { LONG } from '../support/rounds.ts';
import { idsOf } from '../support/routes.ts';
import { findSchemathesis, runSchemathesis } from '../support/schemathesis.ts';
import { allocateNamespace } from '../support/temporal.ts';

const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_schema_conformance',
  'response_headers_conformance',
  'unsupported_method',
  'allow_header_conformance',
  'ignored_auth',
];
const EXAMPLES = process.env.FUZZ_EXAMPLES ?? '100';
const RUN_MILLISECONDS = 900_000;

const found = LONG ? await findSchemathesis() : { missing: 'it takes minutes: `npm run test:long`' };
const fuzz = 'program' in found ? describe : describe.skip;

fuzz(`the fuzzer${'missing' in found ? ` (skipped: ${found.missing})` : ''}`, () => {
  const programs = programsForFile();
  const database = databaseForFile();
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'sluice-fuzz-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each(['ids that are made up', 'ids that exist'])(
    'finds no fault of the server and no status that is not documented, with %s',
    async (kind) => {
      const { address, namespace } = allocateNamespace();
      const settings = {
        DATABASE_URL: database.url,
        TEMPORAL_ADDRESS: address,
        TEMPORAL_NAMESPACE: namespace,
        SLUICE_DATA_DIR: path.join(folder, 'data'),
        SLUICE_ENCRYPTION_KEYS: generateKey('test'),
        SLUICE_LOG_LEVEL: 'error',
      };
      const api = await programs.ready(await programs.startApi(settings));
      // Whatever is exported, it is to folders of this test: no private address may be reached.
      const worker = programs.start('worker/main.ts', settings);
      const tenant = await createTenant(database.pool, kind);
      const ids = idsOf(tenant);
      await insertExportOf(database.pool, tenant);
      // What runs are found by is registered before one is started.
      const schedules = createSchedules(
        loadConfig({ TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace }),
        createLogger({ name: 'test', level: 'silent' }),
      );
      await schedules.ensure();
      await schedules.close();
      const other = await issuePersonalApiKey(database.pool, {
        userId: tenant.userId,
        label: 'other',
        scopes: ['*'],
      });
      const real = {
        // Never the key that asks: a request that rolls it would make a stranger of the fuzzer.
        key_id: other.row.id,
        ...(kind === 'ids that exist'
          ? {
              organization_id: '@current',
              project_id: '@current',
              user_id: '@me',
              user_uuid: tenant.userUuid,
              ...{ id: ids.id, run_id: ids.run_id, backfill_id: ids.backfill_id },
            }
          : {}),
      };
      const parameters = Object.entries(real).map(([name, id]) => `"path.${name}" = ${JSON.stringify(id)}`);
      writeFileSync(path.join(folder, 'schemathesis.toml'), `[parameters]\n${parameters.join('\n')}\n`);
      const report = path.join(folder, 'report.json');
      const { program } = found as { program: string };
      const { code, output } = await runSchemathesis(
        program,
        [
          '--config-file',
          path.join(folder, 'schemathesis.toml'),
          'run',
          `${api.url}/api/schema/?format=json`,
          ...['--url', api.url, '--header', `Authorization: Bearer ${tenant.key}`],
          ...['--checks', CHECKS.join(','), '--max-examples', EXAMPLES, '--seed', '20261121'],
          // Its answers have no end.
          ...['--exclude-path-regex', '/events/live/$'],
          ...['--continue-on-failure', '--phases', 'examples,coverage,fuzzing,stateful'],
          ...['--report', 'json', '--report-json-path', report],
        ],
        folder,
      );
      if (process.env.FUZZ_OUTPUT)
        writeFileSync(process.env.FUZZ_OUTPUT, `${output}\n${readFileSync(report, 'utf8')}`, { flag: 'a' });
      // The log has every answer of 500; the fuzzer's own words say how to get it again.
      expect(api.output()).toBe('');
      expect([code, code === 0 ? '' : output]).toEqual([0, '']);
      // The key was still good at the end: the answers were not all refusals of a stranger.
      const last = await fetch(`${api.url}/api/users/@me/`, {
        headers: { authorization: `Bearer ${tenant.key}` },
      });
      expect(last.status).toBe(200);
      worker.kill('SIGTERM');
      await worker.exited;
      api.kill('SIGTERM');
      expect(await api.exited).toEqual({ code: 0, signal: null });
    },
    RUN_MILLISECONDS,
  );
});
