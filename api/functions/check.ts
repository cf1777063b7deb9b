import { z } from 'zod';
import { checkFunction } from '../../functions/commands/check.ts';
import { findFunction } from '../../functions/rows/functions.ts';
import { isUuid } from '../../values/uuid.ts';
import { clientSignal } from '../asker.ts';
import type { App } from '../dependencies.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { wholeFunction } from './function-schema.ts';
import { PREFIX, WRITE } from './resource.ts';

const checked = z
  .object({
    warnings: z.array(z.string()).meta({
      description: 'What is most likely wrong, although the function can be stored.',
    }),
  })
  .meta({ id: 'FunctionCheck' });

/** A check of nothing would only say that a program is missing. */
const body = wholeFunction.meta({ anyOf: [{ minProperties: 1 }] });

/** Adds the route that checks a function without storing or running it. */
export function checkRoutes(app: App, deps: FunctionRouteDependencies): void {
  app.post(
    `${PREFIX}:id/check/`,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: ['functions'],
        summary: 'Check a function without storing it',
        description:
          'Compiles the function and answers with the error that storing it would give. It does not run. An id that does ' +
          'not exist, such as `new`, checks a function that is not stored.',
        params: z.object({ project_id: z.string(), id: z.string() }),
        body,
        response: { 200: checked },
      },
    },
    async ({ project, params: { id }, body: given }, reply) => {
      const key = { projectId: project.id, functionId: id };
      const current = isUuid(id) ? await findFunction(deps.pool, key) : undefined;
      const warnings = await checkFunction(deps, project.id, current, given, clientSignal(reply));
      return { warnings };
    },
  );
}
