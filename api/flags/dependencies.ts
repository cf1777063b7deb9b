import { readCohortDefinitions } from '../../cohorts/rows/definitions.ts';
import { membershipsOf } from '../../cohorts/rows/members.ts';
import { createDefinitions, type Definitions } from '../../flags/cache/definitions.ts';
import { createEvaluator, type Evaluator } from '../../flags/evaluator.ts';
import { createSubjects } from '../../flags/reads/subjects.ts';
import { readDefinitions } from '../../flags/rows/definitions.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { whenPrepared } from '../public/exchange.ts';

/** The flags of all projects, as the API process evaluates them. */
export interface Flags {
  definitions: Definitions;
  evaluator: Evaluator;
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

/** Puts together what flags need of the other products. */
export function createFlags({
  lanePool,
  listener,
  logger,
  copies,
  isPrepared,
}: Pick<ApiDependencies, 'lanePool' | 'listener' | 'logger' | 'copies' | 'isPrepared'>): Flags {
  const database = whenPrepared(lanePool, isPrepared);
  const definitions = createDefinitions({
    listener,
    logger,
    copies: copies && {
      save: (projectId, lines) => copies.save('flags', String(projectId), lines),
      remove: (projectId) => copies.remove('flags', String(projectId)),
      has: (projectId) => copies.has('flags', String(projectId)),
      read: (projectId) => copies.read('flags', String(projectId)),
    },
    readFlags: (projectId, known) => readDefinitions(database, projectId, known),
    readCohorts: (projectId) => readCohortDefinitions(database, projectId),
  });
  const hasCopies = () => copies !== undefined && copies.count('flags') > 0;
  const subjects = createSubjects(database);
  return {
    definitions,
    evaluator: createEvaluator({ definitions, subjects, memberships: membershipsOf }),
    async hasFlags(projectId) {
      const project = await definitions.of(projectId);
      return project?.set.flags.some((flag) => flag.definition.isActive) ?? false;
    },
    canAnswer: () => (isPrepared() && listener.isListening()) || definitions.size() > 0 || hasCopies(),
    close: () => definitions.close(),
  };
}
