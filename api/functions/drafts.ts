import { z } from 'zod';
import { discardDraft } from '../../functions/commands/draft.ts';
import { previewDraft, publishDraft } from '../../functions/commands/publish.ts';
import { refusing } from '../../functions/commands/refusals.ts';
import { draftChanges, shownDraft } from '../../functions/reads/drafts.ts';
import { findDraft } from '../../functions/rows/drafts.ts';
import { keyOf } from '../../functions/rows/functions.ts';
import { TOKEN_MINUTES } from '../../functions/rules/publish-token.ts';
import { CONTENT } from '../../functions/rules/source.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import type { App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { timestamp } from '../fields.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { findsFunction } from './find-function.ts';
import { type ContentView, functionContent, hogFunction } from './function-schema.ts';
import { PREFIX, READ, viewer, WRITE } from './resource.ts';

const TAGS = ['functions'];
const params = z.object({ project_id: z.string(), id: z.string() });

const change = z
  .object({
    field: z.enum(CONTENT),
    live: z.unknown().meta({ description: 'What runs.' }),
    draft: z.unknown().meta({ description: 'What would run.' }),
    secret_inputs: z.array(z.string()).meta({
      description:
        'The secret inputs that get another value. The name of one in a mapping comes after the place of the mapping and `__`.',
    }),
  })
  .meta({ id: 'FunctionDraftChange' });
const changes = z.array(change).meta({
  description: 'The fields in which the draft differs from what runs. Secrets are hidden.',
});

const draftAnswer = z
  .object({
    draft: functionContent,
    draft_updated_at: timestamp,
    version: z.int().meta({ description: 'The version that runs.' }),
    base_version: z.int().meta({
      description:
        'The version with which the draft began. If it is older than `version`, the draft may undo what was changed since.',
    }),
    changes,
  })
  .meta({ id: 'FunctionDraft' });

const publication = z
  .object({
    published: z.boolean(),
    draft_updated_at: timestamp.nullable(),
    confirm_token: z
      .string()
      .nullable()
      .meta({ description: `Publishes what the preview shows, within ${TOKEN_MINUTES} minutes.` }),
    changed_fields: z.array(z.enum(CONTENT)).nullable(),
    changes: changes.nullable(),
    function: hogFunction.nullable(),
  })
  .meta({ id: 'FunctionPublication' });

const publishing = z
  .object({
    confirm: z.boolean().meta({ description: 'True: publishes. Otherwise the answer is a preview.' }),
    preview: z.boolean().meta({ description: 'The other way to say it: false publishes.' }),
    confirm_token: z.string().max(400).nullable().meta({
      description:
        'The token of a preview. Required for an enabled function, and for one that has changed since its draft began.',
    }),
  })
  .partial()
  .nullish();

/** Adds the routes that show, publish and discard the draft of a function. */
export function draftRoutes(app: App, deps: FunctionRouteDependencies): void {
  const find = findsFunction(deps.pool);
  const view = viewer(deps);

  app.get(
    `${PREFIX}:id/draft/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retrieve the draft of a function, and what it changes',
        params,
        response: { 200: draftAnswer },
      },
    },
    async ({ hogFunction: row }) => {
      const draft = await findDraft(deps.pool, keyOf(row));
      if (!draft) throw errors.notFound('This function has no draft.');
      return {
        draft: shownDraft(row, draft) as ContentView,
        draft_updated_at: draft.updated_at,
        ...{ version: row.version, base_version: draft.base_version },
        changes: await refusing(() => draftChanges(deps.keyring, row, draft)),
      };
    },
  );

  app.post(
    `${PREFIX}:id/publish/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Preview or publish the draft of a function',
        description:
          'Without `confirm`, the answer says what would change, and has a token. With `confirm` and the token, the draft ' +
          'runs. If the draft or the function has changed since the preview, the answer is 409.',
        params,
        body: publishing,
        response: { 200: publication },
      },
    },
    async (request, reply) => {
      const { confirm = false, preview = !confirm, confirm_token: token } = request.body ?? {};
      const key = keyOf(request.hogFunction);
      if (preview) {
        const { token: made, changes: found, draftUpdatedAt } = await previewDraft(deps, key);
        return {
          ...{ published: false, draft_updated_at: draftUpdatedAt, confirm_token: made, function: null },
          ...{ changed_fields: found.map(({ field }) => field), changes: found },
        };
      }
      const signal = clientSignal(reply);
      const row = await publishDraft(deps, actorOf(request), key, token ?? undefined, signal);
      return {
        ...{ published: true, draft_updated_at: null, confirm_token: null, changed_fields: null },
        ...{ changes: null, function: view(row) },
      };
    },
  );

  app.post(
    `${PREFIX}:id/discard_draft/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Discard the draft of a function',
        description: 'Without a draft, nothing happens.',
        params,
        response: { 200: hogFunction },
      },
    },
    async (request) => view(await discardDraft(deps, actorOf(request), keyOf(request.hogFunction))),
  );
}
