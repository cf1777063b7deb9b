import type { ProjectFlags } from '../../flags/cache/definitions.ts';
import type { Evaluated, Evaluator, FlagRequest } from '../../flags/evaluator.ts';
import type { Quotas } from '../../flags/quota/quotas.ts';
import type { Usage } from '../../flags/quota/usage.ts';
import { SURVEY_FLAG_PREFIX } from '../../flags/rows/flags.ts';

/** Nothing is left of the organization's quota. */
export const LIMITED = Symbol('limited');
export type Limited = typeof LIMITED;
type Told = Evaluated | Limited | undefined;

/** A request for definitions counts as so many requests for flags. */
const DEFINITIONS_WEIGHT = 10;

/** Public requests for flags, counted and bounded by the quota of the organization. */
export interface Metered {
  /** What flags are for a client; mostly without a promise. Undefined: there is no such project. */
  evaluate(projectId: number, request: FlagRequest): Told | Promise<Told>;
  /** Counts a request for definitions. False: nothing is left. */
  takeDefinitions(project: ProjectFlags): boolean | Promise<boolean>;
}

export function createMetered(deps: {
  evaluator: Evaluator;
  quotas: Quotas;
  usage: Usage;
  known(projectId: number): ProjectFlags | undefined;
}): Metered {
  const { evaluator, quotas, usage } = deps;

  function settle(told: Evaluated, isAllowed: boolean): Evaluated | Limited {
    usage.count(told.project.projectId, isAllowed ? 'requests' : 'limited');
    return isAllowed ? told : LIMITED;
  }

  function meter(told: Evaluated | undefined): Told | Promise<Told> {
    // Flags that only say who sees a survey do not count.
    if (!told?.flags.some((flag) => !flag.definition.key.startsWith(SURVEY_FLAG_PREFIX))) return told;
    const { organizationId, requestsPerMonth } = told.project;
    const taken = quotas.take(organizationId, requestsPerMonth, 1);
    return taken instanceof Promise ? taken.then((yes) => settle(told, yes)) : settle(told, taken);
  }

  return {
    evaluate(projectId, request) {
      const project = deps.known(projectId);
      // A flood beyond the quota costs no evaluation.
      if (project && quotas.isOver(project.organizationId, project.requestsPerMonth)) {
        usage.count(projectId, 'limited');
        return LIMITED;
      }
      const told = evaluator.evaluate(projectId, request);
      return told instanceof Promise ? told.then(meter) : meter(told);
    },
    takeDefinitions({ projectId, organizationId, requestsPerMonth }) {
      const count = (isAllowed: boolean) => {
        usage.count(projectId, isAllowed ? 'definitions' : 'limited');
        return isAllowed;
      };
      const taken = quotas.take(organizationId, requestsPerMonth, DEFINITIONS_WEIGHT);
      return taken instanceof Promise ? taken.then(count) : count(taken);
    },
  };
}
