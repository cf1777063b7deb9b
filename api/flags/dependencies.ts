import { knownCohorts, readCohortDefinitions } from '../../cohorts/rows/definitions.ts';
import { membershipsOf } from '../../cohorts/rows/members.ts';
import type { Config } from '../../config.ts';
import { createDefinitions, type Definitions } from '../../flags/cache/definitions.ts';
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
import { createMetered, type Metered } from './metered.ts';

/** The flags of all projects, as the API process evaluates them. */
export interface Flags {
  definitions: Definitions;
  evaluator: Evaluator;
  /** What public requests ask for: counted, and bounded by the quota of the organization. */
  metered: Metered;
  usage: Usage;
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

/** What commands about plans for flags need. */
export const planCommands = ({
  pool,
  schedules,
  logger,
}: Pick<ApiDependencies, 'pool' | 'schedules' | 'logger'>): PlanCommandDependencies => ({
  ...{ pool, knownCohorts, temporal: schedules.flags, logger },
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
  config: Pick<Config, 'SLUICE_FLAG_REQUESTS_PER_MONTH'>;
}): Flags {
  const database = whenPrepared(lanePool, isPrepared);
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
    readCohorts: (projectId) => readCohortDefinitions(database, projectId),
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
  return {
    definitions,
    evaluator,
    metered: createMetered({ evaluator, quotas, usage, known: definitions.known }),
    usage,
    async hasFlags(projectId) {
      const project = await definitions.of(projectId);
      return project?.set.flags.some((flag) => flag.definition.isActive) ?? false;
    },
    canAnswer: () =>
      (isPrepared() && listener.isListening()) ||
      !definitions.all()[Symbol.iterator]().next().done ||
      hasCopies(),
    async close() {
      await Promise.all([quotas.close(), usage.close(), definitions.close()]);
    },
  };
}
