import { calledFlagOf } from '../../capture/flag-calls.ts';
import { knownCohorts, readCohortDefinitions } from '../../cohorts/rows/definitions.ts';
import { membershipsOf } from '../../cohorts/rows/members.ts';
import type { Config } from '../../config.ts';
import { eachInTurns } from '../../db/loop-turns.ts';
import { createDefinitions, type Definitions } from '../../flags/cache/definitions.ts';
import { type Calls, createCalls } from '../../flags/calls.ts';
import type { FlagCommandDependencies } from '../../flags/commands/dependencies.ts';
import type { PlanCommandDependencies } from '../../flags/commands/tell.ts';
import { createEvaluator, type Evaluator } from '../../flags/evaluator.ts';
import { createQuotas } from '../../flags/quota/quotas.ts';
import { createUsage, type Usage } from '../../flags/quota/usage.ts';
import { createSubjects } from '../../flags/reads/subjects.ts';
import { readDefinitions } from '../../flags/rows/definitions.ts';
import { giveBack, lease } from '../../flags/rows/quotas.ts';
import { addUsage } from '../../flags/rows/usage.ts';
import { createTold } from '../../flags/told.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { whenPrepared } from '../public/exchange.ts';
import { createDefinitionAnswers, type DefinitionAnswers } from './definition-answers.ts';
import { createMetered, type Metered } from './metered.ts';

/** The flags of all projects, as the API process evaluates them. */
export interface Flags {
  definitions: Definitions;
  evaluator: Evaluator;
  /** When flags were last asked for by their keys. */
  calls: Calls;
  /** What public requests ask for: counted, and bounded by the quota of the organization. */
  metered: Metered;
  usage: Usage;
  /** Definitions for SDKs that evaluate flags by themselves. */
  definitionAnswers: DefinitionAnswers;
  /** Whether a project has a flag that a client may be told. */
  hasFlags(projectId: number): Promise<boolean>;
  /** Whether some project's flags can be told, be it from what was known last. */
  canAnswer(): boolean;
  close(): Promise<void>;
}

export interface FlagRouteDependencies {
  flags: Flags;
  flagPlace?: ApiDependencies['flagPlace'];
}

/** What the commands of flags work with. */
export const flagCommands = ({
  pool,
  keyring,
  config,
}: Pick<ApiDependencies, 'pool' | 'keyring' | 'config'>): FlagCommandDependencies => ({
  pool,
  keyring,
  limits: { flags: config.SLUICE_FLAGS_PER_PROJECT, bytes: config.SLUICE_FLAG_BYTES_PER_PROJECT },
  knownCohorts,
});

/** What commands about plans for flags need. */
export const planCommands = (
  deps: Pick<ApiDependencies, 'pool' | 'keyring' | 'config' | 'schedules' | 'logger'>,
): PlanCommandDependencies => ({
  ...flagCommands(deps),
  temporal: deps.schedules.flags,
  logger: deps.logger,
});

/** Puts together what flags need of the other products. */
export function createFlags({
  lanePool,
  listener,
  logger,
  registry,
  config,
  copies,
  isPrepared,
}: Pick<ApiDependencies, 'lanePool' | 'listener' | 'logger' | 'registry' | 'copies' | 'isPrepared'> & {
  config: Pick<Config, 'SLUICE_FLAG_REQUESTS_PER_MONTH' | 'SLUICE_RATE_LIMIT'>;
}): Flags {
  const database = whenPrepared(lanePool, isPrepared);
  const calls = createCalls({ queryable: database, logger });
  const told = createTold(registry, () => definitions.all());
  const definitions: Definitions = createDefinitions({
    listener,
    logger,
    copies: copies && {
      save: (projectId, lines) => copies.save('flags', String(projectId), lines),
      remove: (projectId) => copies.remove('flags', String(projectId)),
      has: (projectId) => copies.has('flags', String(projectId)),
      read: (projectId) => copies.read('flags', String(projectId)),
    },
    onReplaced: told.retire,
    readFlags: (projectId, known) => readDefinitions(database, projectId, known),
    readCohorts: (projectId, known) => readCohortDefinitions(database, projectId, known),
  });
  const hasCopies = () => copies !== undefined && copies.count('flags') > 0;
  const subjects = createSubjects(database);
  const evaluator = createEvaluator({ definitions, subjects, memberships: membershipsOf });
  const quotas = createQuotas({
    logger,
    usualBound: config.SLUICE_FLAG_REQUESTS_PER_MONTH,
    lease: (asked) => lease(database, asked),
    giveBack: (given) => giveBack(database, given),
  });
  const usage = createUsage({ logger, write: (counts) => addUsage(database, counts) });
  const metered = createMetered({ evaluator, quotas, usage, known: definitions.known });
  return {
    definitions,
    calls,
    evaluator,
    metered,
    usage,
    definitionAnswers: createDefinitionAnswers({
      ...{ definitions, metered },
      // Requests that count in a rate limit are counted by the management API.
      remembers: !config.SLUICE_RATE_LIMIT,
    }),
    async hasFlags(projectId) {
      const project = await definitions.of(projectId);
      return project?.set.flags.some((flag) => flag.definition.isActive) ?? false;
    },
    canAnswer: () =>
      (isPrepared() && listener.isListening()) ||
      !definitions.all()[Symbol.iterator]().next().done ||
      hasCopies(),
    async close() {
      await Promise.all([calls.close(), quotas.close(), usage.close(), definitions.close()]);
    },
  };
}

/** So many events are looked at in one turn of the event loop. */
const MOST_AT_ONCE = 5_000;

/** Notes the flags of which stored events say that somebody checked them. */
export function notesCalls(ingest: ApiDependencies['ingest'], calls: Calls): ApiDependencies['ingest'] {
  return {
    async submit(request) {
      const submitted = await ingest.submit(request);
      const events = 'events' in request ? request.events : request.prepared.events.map((one) => one.event);
      await eachInTurns(events, MOST_AT_ONCE, (event) => {
        const key = event.historical ? undefined : calledFlagOf(event);
        if (key !== undefined) calls.note(request.projectId, key);
      });
      return submitted;
    },
  };
}
