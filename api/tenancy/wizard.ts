import { z } from 'zod';
import { transaction } from '../../db/pool.ts';
import { findMemberProject, findProject } from '../../db/projects.ts';
import { findUser } from '../../db/users.ts';
import {
  authenticateWizardSession,
  findWizardSession,
  insertWizardSession,
} from '../../db/wizard-sessions.ts';
import { audit } from '../../tenancy/audit.ts';
import { hashToken, randomLetters } from '../../tenancy/tokens.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { errorBody } from '../fields.ts';
import { newOrganization, organization, organizationView } from './organization-schema.ts';

const TAGS = ['wizard'];
const SESSION_SECONDS = 600;
const HASH_LENGTH = 64;
const MAX_PROJECT_ID = 2 ** 31 - 1;

const failure = z.object({ error: z.string() }).meta({ id: 'WizardError' });
const authenticate = newOrganization.partial().extend({
  hash: z.string().min(1).max(200),
  projectId: z.int().min(1).optional(),
});

/**
 * Adds the routes of the setup wizard. The command line starts a session and gets its hash. A user with a key connects
 * the session to a project. The command line polls until it gets the public key of that project.
 */
export function wizardRoutes(app: App, { pool, config }: ApiDependencies): void {
  app.post(
    '/api/wizard/initialize/',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        summary: 'Start a wizard session, which lasts ten minutes',
        response: { 200: z.object({ hash: z.string() }) },
      },
    },
    async () => {
      const hash = randomLetters(HASH_LENGTH);
      await insertWizardSession(pool, hashToken(hash), SESSION_SECONDS);
      return { hash };
    },
  );

  app.get(
    '/api/wizard/data/',
    {
      config: { access: 'public' },
      schema: {
        tags: TAGS,
        summary: 'Get the project of a wizard session, once a user has connected it',
        headers: z.object({
          'x-posthog-wizard-hash': z.string().optional().meta({ description: 'The hash of the session.' }),
        }),
        response: {
          200: z.object({ project_api_key: z.string(), host: z.string(), user_distinct_id: z.string() }),
          400: failure,
          401: errorBody,
          404: failure,
        },
      },
    },
    async (request, reply) => {
      const hash = request.headers['x-posthog-wizard-hash'];
      if (typeof hash !== 'string' || hash === '') throw errors.notAuthenticated();
      const session = await findWizardSession(pool, hashToken(hash));
      if (!session) return reply.code(404).send({ error: 'Invalid hash.' });
      const [project, user] =
        session.project_id !== null && session.user_id !== null
          ? await Promise.all([findProject(pool, session.project_id), findUser(pool, session.user_id)])
          : [];
      if (!project || !user) {
        return reply.code(400).send({ error: 'Setup wizard not authenticated. Please login first' });
      }
      return {
        project_api_key: project.api_token,
        host: config.SLUICE_PUBLIC_URL,
        user_distinct_id: user.distinct_id,
      };
    },
  );

  app.post(
    '/api/organizations/:organization_id/authenticate_wizard/',
    {
      config: { access: { scope: 'team:read', isOrganization: true, budget: 'wizard' } },
      schema: {
        tags: TAGS,
        summary: 'Connect a wizard session to a project of the organization',
        params: z.object({ organization_id: z.string() }),
        body: authenticate,
        response: {
          200: organization.extend({ success: z.literal(true) }).meta({ id: 'AuthenticatedWizard' }),
        },
      },
    },
    async (request) => {
      const { caller, body } = request;
      const own = request.organization;
      const projectId = body.projectId ?? currentProject(caller.user.current_project_id);
      function currentProject(current: number | null): number {
        const found = own.projects.find((one) => one.id === current) ?? own.projects[0];
        if (!found) throw errors.validation('not_found', 'This project does not exist.', 'projectId');
        return found.id;
      }
      const project =
        projectId <= MAX_PROJECT_ID ? await findMemberProject(pool, caller.user.id, projectId) : undefined;
      if (!project || project.organization_id !== own.id) {
        throw errors.validation('not_found', 'This project does not exist.', 'projectId');
      }
      await transaction(pool, async (client) => {
        if (!(await authenticateWizardSession(client, hashToken(body.hash), caller.user.id, project.id))) {
          throw errors.validation('invalid_hash', 'This hash is invalid or has expired.', 'hash');
        }
        await audit(client, actorOf(request), {
          scope: 'Wizard',
          itemId: String(project.id),
          activity: 'authenticated',
          organizationId: own.id,
          projectId: project.id,
        });
      });
      return { ...organizationView(own, config.SLUICE_INSTANCE_TAG), success: true as const };
    },
  );
}
