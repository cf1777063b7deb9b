import type { Pool } from '../db/pool.ts';
import type { Product } from '../tenancy/product.ts';
import { advanceSurveys, type SurveyRunDependencies } from './runs/iterations.ts';
import { endFullSurveys } from './runs/limits.ts';

/** Describes surveys to the rest of Sluice. */
export const SURVEYS: Product<{ pool: Pool; surveys: SurveyRunDependencies }> = {
  name: 'surveys',
  docs: 'docs/surveys.md',
  tables: [{ name: 'surveys', kind: 'configuration' }],
  sealed: [],
  scopes: ['survey'],
  maintenance: [
    {
      name: 'endFullSurveys',
      summary: 'surveys ended that have enough answers',
      run: ({ pool }, work) => endFullSurveys({ pool }, work),
    },
    {
      name: 'advanceSurveys',
      summary: 'iterations of surveys begun or ended',
      run: ({ surveys }, work) => advanceSurveys(surveys, work),
    },
  ],
};
