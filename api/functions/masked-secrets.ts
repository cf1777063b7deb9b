import { z } from 'zod';
import { refusing } from '../../functions/commands/refusals.ts';
import { findMaskedSecrets } from '../../functions/reads/masked-secrets.ts';
import { TYPE_NAMES } from '../../functions/rules/types.ts';
import { clientSignal } from '../asker.ts';
import type { App } from '../dependencies.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { PREFIX, READ } from './resource.ts';

const keys = z.array(z.string());

const maskedFunction = z
  .object({
    id: z.guid(),
    name: z.string(),
    type: z.enum(TYPE_NAMES),
    enabled: z.boolean(),
    input_keys: keys.meta({
      description:
        'The keys of the secret inputs to enter again. The key of one in a mapping comes after its place and `__`.',
    }),
    draft_input_keys: keys.meta({ description: 'The same for the draft of the function.' }),
  })
  .meta({ id: 'FunctionMaskedSecrets' });

/** Adds the route that lists functions whose secrets were overwritten by what hides them. */
export function maskedSecretRoutes(app: App, { pool, keyring }: FunctionRouteDependencies): void {
  app.get(
    `${PREFIX}masked_secrets/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: ['functions'],
        summary: 'List functions that store `********` in place of a secret',
        description:
          'Such a function cannot sign in anywhere. The real value is lost: enter it again. The answer names inputs, and ' +
          'never shows values.',
        params: z.object({ project_id: z.string() }),
        response: { 200: z.array(maskedFunction) },
      },
    },
    async ({ project }, reply) => {
      const signal = clientSignal(reply);
      const found = await refusing(() => findMaskedSecrets(pool, keyring, project.id, signal));
      return found.map(({ id, name, type, enabled, inputKeys, draftInputKeys }) => ({
        ...{ id, name: name ?? '', type, enabled },
        ...{ input_keys: inputKeys, draft_input_keys: draftInputKeys },
      }));
    },
  );
}
