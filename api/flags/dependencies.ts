import { knownCohorts, readCohortDefinitions } from '../../cohorts/rows/definitions.ts';
import { membershipsOf } from '../../cohorts/rows/members.ts';
import { createDefinitions, type Definitions } from '../../flags/cache/definitions.ts';
import { type Calls, createCalls } from '../../flags/calls.ts';
import type { FlagCommandDependencies } from '../../flags/commands/dependencies.ts';
import { createEvaluator, type Evaluator } from '../../flags/evaluator.ts';
import { createSubjects } from '../../flags/reads/subjects.ts';
import { readDefinitions } from '../../flags/rows/definitions.ts';
import type { ApiDependencies } from '../dependencies.ts';

/** The flags of all projects, as the API process evaluates them. */
export interface Flags {
  definitions: Definitions;
  evaluator: Evaluator;
  /** When flags were last asked for by their keys. */
  calls: Calls;
  /** Whether a project has a flag that a client may be told. */
  hasFlags(projectId: number): Promise<boolean>;
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

/** Puts together what flags need of the other products. */
export function createFlags({
  lanePool,
  listener,
  logger,
}: Pick<ApiDependencies, 'lanePool' | 'listener' | 'logger'>): Flags {
  const calls = createCalls({ queryable: lanePool, logger });
  const definitions = createDefinitions({
    listener,
    logger,
    readFlags: (projectId, known) => readDefinitions(lanePool, projectId, known),
    readCohorts: (projectId) => readCohortDefinitions(lanePool, projectId),
  });
  const subjects = createSubjects(lanePool);
  return {
    definitions,
    calls,
    evaluator: createEvaluator({ definitions, subjects, memberships: membershipsOf }),
    async hasFlags(projectId) {
      const project = await definitions.of(projectId);
      return project?.set.flags.some((flag) => flag.definition.isActive) ?? false;
    },
    async close() {
      await Promise.all([calls.close(), definitions.close()]);
    },
  };
}

/** What SDKs say whenever somebody checks a flag, whether they computed it themselves or asked for it. */
const CALLED = '$feature_flag_called';

/** Notes the flags of which stored events say that somebody checked them. */
export function notesCalls(ingest: ApiDependencies['ingest'], calls: Calls): ApiDependencies['ingest'] {
  return {
    async submit(request) {
      const submitted = await ingest.submit(request);
      for (const { event, historical, properties } of request.events) {
        if (event !== CALLED || historical) continue;
        const key = properties.$feature_flag;
        if (typeof key === 'string') calls.note(request.projectId, key);
      }
      return submitted;
    },
  };
}
