import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Connection } from '@temporalio/client';
import { loadConfig } from '../../config.ts';
import { runExport } from '../../exports/commands/run-now.ts';
import { diagnoseTemporal } from '../../schedules/diagnose.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { commandToRegister } from '../../schedules/search-attributes.ts';
import { upkeepId } from '../../schedules/upkeep.ts';
import { findTemporal } from '../../stack/temporal/binary.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { OPERATOR as BY_OPERATOR } from '../../tenancy/actor.ts';
import { MAINTENANCE, searchAttributes } from '../../workflows/names.ts';
import { exportWorldForFile, fillHour, hourly } from '../exports/support.ts';
import { eventually } from '../support/eventually.ts';
import { denies, grpcProxyForFile } from '../support/grpc-proxy.ts';
import { reservePort } from '../support/ports.ts';
import { startTestWorker } from '../support/worker.ts';

const OPERATOR = 'OperatorService';
/** The Temporal of the run, as Temporal Cloud looks from a namespace: nobody may ask the service for operators. */
const proxy = grpcProxyForFile(denies(OPERATOR));
const world = exportWorldForFile({ settings: () => ({ TEMPORAL_ADDRESS: proxy.address }) });
afterAll(() => proxy.close());

const states = async (more: Record<string, string> = {}) => {
  const findings = await diagnoseTemporal(loadConfig({ ...world.variables, ...more }));
  return Object.fromEntries(findings.map(({ check, ok, sentence }) => [check, { ok, sentence }]));
};

describe('where the service for operators is denied', () => {
  test('a worker starts and exports', async () => {
    expect(proxy.refused).toContain('/temporal.api.operatorservice.v1.OperatorService/ListSearchAttributes');
    await fillHour(world.pool, 1, 20);
    const row = await world.create('File', { directory: 'denied' });
    const { run } = await world.run(row, hourly(1));
    expect(run).toMatchObject({ status: 'Completed', records_completed: 20 });
  });

  test('doctor finds nothing wrong', async () => {
    const found = await states();
    expect(Object.values(found).map(({ ok }) => ok)).toEqual([true, true, true, true, true, true, true]);
    expect(found['search attributes']?.sentence).toBe('The search attributes are registered.');
  });

  test('a worker that may not look at schedules works on what there is', async () => {
    proxy.fate = denies(OPERATOR, 'Schedule', 'StartWorkflow');
    const schedules = createSchedules(world.config, createLogger({ name: 'test', level: 'silent' }));
    const worker = await startTestWorker({ config: world.config, pool: world.pool, schedules });
    expect(proxy.refused).toContainEqual(expect.stringMatching(/DescribeSchedule$/));
    await worker.stop();
    await schedules.close();
    proxy.fate = denies(OPERATOR);
  });
});

describe('doctor', () => {
  test('says what is denied, and whether Sluice needs it', async () => {
    proxy.fate = denies(OPERATOR, 'DescribeNamespace', 'DescribeTaskQueue', 'DescribeWorkflow');
    const found = await states();
    expect(found.Temporal).toEqual({ ok: true, sentence: `Temporal answers at ${proxy.address}.` });
    const spared =
      /^Temporal denies .* \(Request unauthorized\.\)\. So this is not checked\. Sluice works without it\.$/;
    expect(found['Temporal namespace']).toEqual({ ok: true, sentence: expect.stringMatching(spared) });
    expect(found.workers).toEqual({ ok: true, sentence: expect.stringMatching(spared) });
    expect(found.maintenance).toEqual({
      ok: false,
      sentence:
        'Temporal denies describing workflows (Request unauthorized.). Exports need it: give the credentials of Sluice this right.',
    });
  });

  test('tells a Temporal that denies access from one that is silent and one that is away', async () => {
    proxy.fate = denies('');
    expect(await states()).toEqual({
      Temporal: { ok: false, sentence: expect.stringContaining('but denies access (Request unauthorized.)') },
    });
    proxy.fate = () => 'hang';
    expect((await states()).Temporal?.sentence).toMatch(
      /^\S+ accepts connections, but no Temporal answers there \(/,
    );
    proxy.fate = denies(OPERATOR);
    const address = `127.0.0.1:${await reservePort()}`;
    expect((await states({ TEMPORAL_ADDRESS: address })).Temporal?.sentence).toContain(
      `Temporal does not answer at ${address} (`,
    );
  });
});

describe('a namespace without search attributes, and without the right to register them', () => {
  const namespace = `bare-${randomUUID()}`;
  const lines: string[] = [];
  const logger = createLogger({ name: 'test', level: 'info' }, { write: (line) => void lines.push(line) });
  let schedules: Schedules;
  const said = () => lines.map((line) => JSON.parse(line) as { msg: string; reason?: string });
  const completed = async (query: string) => {
    const { workflowService } = world.client.connection as Connection;
    const found = await workflowService.listWorkflowExecutions({ namespace, query });
    return found.executions?.length ?? 0;
  };
  const all = Object.values(searchAttributes);
  const config = () => loadConfig({ ...world.variables, TEMPORAL_NAMESPACE: namespace });

  beforeAll(async () => {
    proxy.fate = denies(OPERATOR);
    const { workflowService } = world.client.connection as Connection;
    await workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    });
    await eventually(() =>
      completed('').then(
        () => true,
        () => false,
      ),
    );
    schedules = createSchedules(config(), logger);
  });
  afterAll(() => schedules?.close());

  test('a worker names them with the command, once, and maintenance runs', async () => {
    const worker = await startTestWorker({ config: config(), pool: world.pool, schedules, logger });
    try {
      await schedules.ensure();
      const warnings = said().filter(({ msg }) => msg.includes('lacks the search attributes'));
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({
        msg: `The namespace ${namespace} lacks the search attributes ${all.map(({ name }) => name).join(', ')}. Exports wait for them. Temporal does not let Sluice register them. Do it with: ${commandToRegister(all, config())}`,
        reason: expect.stringContaining('Request unauthorized.'),
      });
      const { workflowService } = world.client.connection as Connection;
      await eventually(async () => {
        const execution = { workflowId: upkeepId('maintenance', config().SLUICE_TASK_QUEUE) };
        const { history } = await workflowService.getWorkflowExecutionHistory({ namespace, execution });
        return history?.events?.some((one) => one.activityTaskCompletedEventAttributes);
      });
    } finally {
      await worker.stop();
    }
  });

  test('whoever runs an export now, or verifies one, reads what is missing', async () => {
    const row = await world.create('NoOp', {});
    const deps = { pool: world.pool, temporal: schedules.exports, logger } as unknown as Parameters<
      typeof runExport
    >[0];
    const sentence = `The namespace ${namespace} lacks the search attributes ${all.map(({ name }) => name).join(', ')}. Exports wait for them. Whoever runs Sluice sees with \`npx sluice doctor\` how to register them.`;
    const refusal = { kind: 'unavailable', message: sentence, retrySeconds: 60 };
    await expect(runExport(deps, BY_OPERATOR, row, { start_at: hourly(1).start })).rejects.toMatchObject(
      refusal,
    );
    const verified = schedules.exports.verify(row, hourly(1), { waitMilliseconds: 1_000 });
    await expect(verified).rejects.toMatchObject(refusal);
  });

  test('doctor names them, and only what is missing', async () => {
    const found = await states({ TEMPORAL_NAMESPACE: namespace });
    const command = commandToRegister(all, config());
    expect(found['search attributes']?.ok).toBe(false);
    expect(found['search attributes']?.sentence).toContain(command);
    expect(found.Temporal?.ok).toBe(true);
    expect(found.maintenance?.ok).toBe(true);
    await registerByHand(commandToRegister([searchAttributes.kind], config()));
    await eventually(
      async () =>
        !(await states({ TEMPORAL_NAMESPACE: namespace }))['search attributes']?.sentence.includes(
          'SluiceKind',
        ),
    );
    expect((await states({ TEMPORAL_NAMESPACE: namespace }))['search attributes']?.sentence).toContain(
      'lacks the search attributes SluiceProject, SluiceExport,',
    );
  });

  test('once somebody has registered them by that command, exports have schedules', async () => {
    const row = await world.create('NoOp', {});
    await expect(schedules.exports.sync(row)).rejects.toThrow();
    await registerByHand(commandToRegister(all.slice(1), config()));
    await eventually(async () => {
      await schedules.ensure();
      return said().some(({ msg }) => msg === 'the search attributes that were missing are registered');
    });
    expect(await schedules.exports.sync(row)).toBe(true);
    // Those of the installation itself have them now, too.
    const query = `${searchAttributes.kind.name} = '${MAINTENANCE}'`;
    await eventually(async () => {
      schedules.nudgeMaintenance();
      return (await completed(query)) > 0;
    });
  });

  /** Runs the printed command as it is, but at Temporal itself, as somebody with the right would. */
  async function registerByHand(command: string): Promise<void> {
    const { SLUICE_CACHE_DIR: cacheDir } = loadConfig(process.env);
    const program = await findTemporal({ cacheDir, report: () => undefined });
    const [name, ...args] = command.split(' ');
    expect(name).toBe(path.basename(program).replace(/\.exe$/, ''));
    const there = args.map((arg) =>
      arg === proxy.address ? (process.env.TEST_TEMPORAL_ADDRESS as string) : arg,
    );
    await promisify(execFile)(program, there);
  }
});

test('the command is that of Temporal Cloud where it is Temporal Cloud', () => {
  const { kind, intervalEnd } = searchAttributes;
  const here = { TEMPORAL_ADDRESS: 'temporal.acme.test:7233', TEMPORAL_NAMESPACE: 'sluice' };
  expect(commandToRegister([kind, intervalEnd], here)).toBe(
    'temporal operator search-attribute create --address temporal.acme.test:7233 --namespace sluice --name SluiceKind --type Keyword --name SluiceIntervalEnd --type Datetime',
  );
  for (const address of ['sluice.a1b2c.tmprl.cloud:7233', 'eu-west-1.aws.api.temporal.io:7233']) {
    const cloud = { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: 'sluice.a1b2c' };
    expect(commandToRegister([kind, intervalEnd], cloud)).toBe(
      'tcld namespace search-attributes add --namespace sluice.a1b2c --search-attribute "SluiceKind=Keyword" --search-attribute "SluiceIntervalEnd=Datetime"',
    );
  }
});
