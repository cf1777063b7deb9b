// The SDKs evaluate flags by themselves. What they decide must be what the server answers, but for a written list.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { PostHog } from 'posthog-node-5';
import { findPythonClient, runProgram } from '../../capture/client-programs.ts';
import { rounds } from '../../support/rounds.ts';
import { type Cases, compare } from './compare.ts';
import { EXCEPTIONS, FLAG_EXCEPTIONS, SKIPPED_CONDITION } from './exceptions.ts';
import { type Ours, ours, type Values } from './ours.ts';
import { allValues, dice, randomCohorts, randomFilters, randomFlags, randomUser } from './random.ts';

const PATIENCE = rounds(800_000, 1_800_000);
const PYTHON = '7.91.1';
const { found: python, reason } = findPythonClient(PYTHON);
if (python === undefined) process.stderr.write(`skipped: posthog-python ${PYTHON}: ${reason}\n`);

async function* byNode({ users }: Cases, host: string): AsyncGenerator<Values> {
  const client = new PostHog('phc_one', {
    ...{ host, personalApiKey: 'phx_one' },
    featureFlagsPollingInterval: 3_600_000,
  });
  // It warns of each definition that it leaves to the server.
  const warn = jest.spyOn(console, 'warn').mockImplementation(() => {});
  // It makes an error for each filter that it cannot decide. Nobody reads where.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    await client.reloadFeatureFlags();
    for (const { distinctId, deviceId, groups, groupProperties, personProperties: given } of users) {
      const personProperties = { ...given, ...(deviceId ? { $device_id: deviceId } : {}) };
      const options = { groups, personProperties, groupProperties, onlyEvaluateLocally: true };
      yield await client.getAllFlags(distinctId, options as never);
    }
  } finally {
    await client.shutdown();
    warn.mockRestore();
    Error.stackTraceLimit = stackTraceLimit;
  }
}

async function* byPython({ users }: Cases, host: string): AsyncGenerator<Values> {
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-agreement-'));
  try {
    const file = path.join(folder, 'users');
    const answers = path.join(folder, 'answers');
    writeFileSync(file, users.map((user) => JSON.stringify(user)).join('\n'));
    const program = path.join(import.meta.dirname, 'evaluate.py');
    const { code, output } = await runProgram(
      'python3',
      [program, host, 'phc_one', 'phx_one', file, answers],
      {
        env: { PYTHONPATH: python as string, PYTHONDONTWRITEBYTECODE: '1', TZ: 'UTC' },
        patience: PATIENCE,
      },
    );
    if (code !== 0) throw new Error(output);
    for (const line of readFileSync(answers, 'utf8').trimEnd().split('\n')) yield JSON.parse(line);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function random(seed: number, count: number): Cases {
  const roll = dice(seed);
  const cohorts = randomCohorts(roll, 40);
  const flags = randomFlags(roll, 300, cohorts);
  const users = Array.from({ length: count }, (_, number) => randomUser(roll, number));
  return { cohorts, flags, users };
}

/** Each filter in a flag of its own, with each value. */
function filterByFilter(seed: number, count: number): Cases {
  const flags = randomFilters(dice(seed), count).map((property, index) => ({
    ...{ id: index + 1, key: `filter-${index + 1}`, bucketing: 'distinct_id' as const, isActive: true },
    filters: { groups: [{ properties: [{ ...property, key: 'p' }], rollout_percentage: 100 }] },
  }));
  const users = allValues().map((p, index) => ({
    ...{ distinctId: `user-${index}`, deviceId: '', groups: {}, groupProperties: {} },
    personProperties: { p },
  }));
  return { cohorts: [], flags, users };
}

test('the documentation has each exception, and no other', () => {
  const docs = readFileSync(path.join(import.meta.dirname, '../../../docs/flags.md'), 'utf8');
  const [, part] = /### Where SDKs decide otherwise\n(.*?)\n##/s.exec(docs) as RegExpExecArray;
  const rows = (part as string).split('\n').filter((line) => line.startsWith('| '));
  const told = rows.slice(1).map((line) => line.split('|').map((cell) => cell.trim()));
  // The clients for Go and Rust are not compared here.
  const compared = told.filter(([, , sdks]) => !/^(go|rust|go, rust)$/.test(sdks as string));
  const known = [...EXCEPTIONS, ...FLAG_EXCEPTIONS, { name: SKIPPED_CONDITION, sdks: ['node', 'python'] }];
  expect(compared.map(([, name, sdks]) => [name, sdks])).toEqual(
    known.map(({ name, sdks }) => [name, sdks.join(', ')]),
  );
});

describe.each([
  ['300 random flags', random(2026, rounds(150, 10_000)), 0.55],
  ['filter by filter', filterByFilter(5, rounds(500, 3_000)), 0.4],
] as const)('%s', (_name, cases, share) => {
  let server: Ours;
  let host: string;
  beforeAll(async () => {
    server = await ours(cases.flags, cases.cohorts);
    host = await server.serve();
  });
  afterAll(() => server.close());

  test.each([['node', byNode], ...(python === undefined ? [] : ([['python', byPython]] as const))] as const)(
    'posthog-%s agrees, but for the written exceptions',
    async (sdk, evaluated) => {
      const { asked, decided, excused, differences } = await compare(
        sdk,
        cases,
        server,
        evaluated(cases, host),
      );
      expect(differences).toEqual([]);
      expect(asked).toBe(cases.flags.filter((one) => one.isActive).length * cases.users.length);
      // What the SDK cannot decide, it asks the server. Most it can.
      expect(decided / asked).toBeGreaterThan(share);
      // An exception that nothing needs does not belong on the list.
      const all = cases.cohorts.length > 0 ? [...EXCEPTIONS, ...FLAG_EXCEPTIONS] : EXCEPTIONS;
      const needed = all.filter((one) => one.sdks.includes(sdk)).map((one) => one.name);
      expect([...excused.keys()].filter((name) => name !== SKIPPED_CONDITION).sort()).toEqual(needed.sort());
    },
    PATIENCE,
  );
});
