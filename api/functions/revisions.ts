import { z } from 'zod';
import { restoreRevision } from '../../functions/commands/restore.ts';
import { shownSource } from '../../functions/reads/drafts.ts';
import { keyOf } from '../../functions/rows/functions.ts';
import { findRevision, listRevisions, type RevisionSummary } from '../../functions/rows/revisions.ts';
import { MOST_REVISIONS } from '../../functions/rules/limits.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import type { App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instant, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { basicUser, basicUserView } from '../tenancy/user-schema.ts';
import type { FunctionRouteDependencies } from './dependencies.ts';
import { findsFunction } from './find-function.ts';
import { type ContentView, functionContent, hogFunction } from './function-schema.ts';
import { PREFIX, READ, viewer, WRITE } from './resource.ts';

const TAGS = ['functions'];
const params = z.object({ project_id: z.string(), id: z.string() });
const revisionParams = params.extend({ version: z.string() });

const summary = z
  .object({
    version: z.int(),
    created_at: timestamp,
    created_by: basicUser.nullable().meta({
      description: 'Null: the author is gone, or the version is older than the first revision.',
    }),
  })
  .meta({ id: 'FunctionRevisionSummary' });
const revision = summary.extend({ content: functionContent }).meta({ id: 'FunctionRevision' });

const restoring = z
  .object({
    overwrite: z.boolean().meta({ description: 'True: the revision takes the place of a draft.' }),
    with_secrets: z.boolean().meta({
      description:
        'True: the secrets of the revision come back too. Otherwise secrets stay as they are now, and only those that the ' +
        'function no longer has come back.',
    }),
    base_updated_at: instant.meta({
      description:
        'The `draft_updated_at` of the draft to overwrite. If it has changed since, the answer is 409.',
    }),
  })
  .partial()
  .nullish();

const summaryView = ({ version, created_at, creator }: RevisionSummary) => ({
  ...{ version, created_at },
  created_by: creator && basicUserView(creator),
});

/** Reads the version of a path. */
function versionOf({ version }: { version: string }): number {
  if (/^\d{1,9}$/.test(version)) return Number(version);
  throw errors.notFound();
}

/** Adds the routes that list, show and restore earlier versions of a function. */
export function revisionRoutes(app: App, deps: FunctionRouteDependencies): void {
  const { pool, publicUrl } = deps;
  const find = findsFunction(pool);
  const view = viewer(deps);

  app.get(
    `${PREFIX}:id/revisions/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the revisions of a function, newest first',
        description: `Each change of what the function does makes one. The newest ${MOST_REVISIONS} are kept.`,
        params,
        querystring: pageQuery,
        response: { 200: page(summary) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { count, rows } = await listRevisions(pool, keyOf(request.hogFunction), wanted);
      return paginated(request, publicUrl, wanted, count, rows.map(summaryView));
    },
  );

  app.get(
    `${PREFIX}:id/revisions/:version/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retrieve a revision of a function',
        params: revisionParams,
        response: { 200: revision },
      },
    },
    async ({ hogFunction: row, params: asked }) => {
      const found = await findRevision(pool, keyOf(row), versionOf(asked));
      if (!found) throw errors.notFound('No such revision for this function.');
      const content = shownSource(found.content, found.secret_keys) as ContentView;
      return { ...summaryView(found), content };
    },
  );

  app.post(
    `${PREFIX}:id/revisions/:version/restore/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Make a revision the draft of a function',
        description:
          'What runs stays as it is until you publish the draft. If there is a draft, the answer is 409 with the code ' +
          '`draft_exists`, unless you set `overwrite`.',
        params: revisionParams,
        body: restoring,
        response: { 200: hogFunction },
      },
    },
    async (request, reply) => {
      const { overwrite = false, with_secrets: withSecrets = false, ...more } = request.body ?? {};
      const key = keyOf(request.hogFunction);
      const version = versionOf(request.params);
      return view(
        await restoreRevision(
          deps,
          actorOf(request),
          key,
          version,
          { overwrite, withSecrets, ...more },
          clientSignal(reply),
        ),
      );
    },
  );
}
