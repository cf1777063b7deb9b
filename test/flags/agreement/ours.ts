// Our own side of the comparison: the definitions as SDKs load them, and the evaluation that requests get, without a database.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFlagBody } from '../../../api/flags/request.ts';
import { createDefinitions, type ProjectFlags } from '../../../flags/cache/definitions.ts';
import { createEvaluator } from '../../../flags/evaluator.ts';
import { localDefinitions } from '../../../flags/local-definitions.ts';
import { parseExactJson } from '../../../values/exact-json.ts';
import { GROUP_TYPES, type RandomCohort, type RandomFlag, type RandomUser } from './random.ts';

const PROJECT = 1;

export type Values = Record<string, boolean | string>;

export interface Ours {
  /** The values of a user, as a request gets them. */
  values(user: RandomUser): Promise<Values>;
  /** The parts of the answer to a user: the value of each flag, why, and its payload. */
  details(user: RandomUser): Promise<string[]>;
  /** Answers SDKs that ask for definitions at this address. */
  serve(): Promise<string>;
  close(): Promise<void>;
}

export async function ours(
  flags: readonly RandomFlag[],
  cohorts: readonly RandomCohort[],
  now?: () => number,
): Promise<Ours> {
  const definitions = createDefinitions({
    listener: { subscribe: () => () => {}, isListening: () => true },
    logger: { warn: () => {} },
    readFlags: async () => ({
      project: {
        ...{ organization_id: 'one', timezone: 'UTC', overrides: [], flag_requests_per_month: null },
        group_types: GROUP_TYPES.map((group_type, group_type_index) => ({ group_type, group_type_index })),
      },
      stamps: flags.map(({ id }) => ({ id, stamp: '1' })),
      changed: flags.map((flag) => ({
        ...{ id: flag.id, stamp: '1', key: flag.key, name: '', version: 1, active: flag.isActive },
        filters: JSON.stringify(flag.filters),
        ...{ ensure_experience_continuity: false, is_remote_configuration: false },
        ...{ has_encrypted_payloads: false, evaluation_runtime: 'all' as const },
        bucketing_identifier: flag.bucketing,
        ...{ evaluation_contexts: [], tags: [] },
      })),
    }),
    readCohorts: async () =>
      cohorts.map(({ id, properties }) => ({
        ...{ id, is_static: false },
        filters: JSON.stringify({ properties }),
      })),
    // What is never older than now is never read again.
    now: () => 0,
  });
  const project = (await definitions.of(PROJECT)) as ProjectFlags;
  const evaluator = createEvaluator({
    definitions,
    subjects: {
      person: async () => undefined,
      group: async () => undefined,
      ask: async () => {
        throw new Error('The comparison has no database.');
      },
    },
    memberships: async () => [],
    ...(now ? { now } : {}),
  });
  let server: Server | undefined;

  async function evaluate(user: RandomUser) {
    const body = JSON.stringify({
      distinct_id: user.distinctId,
      ...(user.deviceId === '' ? {} : { $device_id: user.deviceId }),
      groups: user.groups,
      person_properties: user.personProperties,
      group_properties: user.groupProperties,
    });
    const { distinctId, request } = readFlagBody(parseExactJson(body));
    const found = await evaluator.evaluate(PROJECT, {
      ...request,
      ...{ distinctId: distinctId ?? '', place: {}, runtime: 'all' },
    });
    if (!found) throw new Error('There are no flags.');
    return found.flags.map((flag) => [flag.definition.key, found.evaluation.of(flag)] as const);
  }

  return {
    async values(user) {
      const outcomes = await evaluate(user);
      return Object.fromEntries(
        outcomes.map(([key, one]) => [key, one.enabled ? (one.variant ?? true) : false]),
      );
    },
    async details(user) {
      return (await evaluate(user)).map(([, outcome]) => outcome.detail);
    },
    async serve() {
      const text = await localDefinitions(project);
      server = createServer((_request, response) => {
        response.setHeader('content-type', 'application/json').end(text);
      });
      await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    async close() {
      server?.closeAllConnections();
      await new Promise<void>((resolve) => (server ? server.close(() => resolve()) : resolve()));
      await definitions.close();
    },
  };
}
