import { z } from 'zod';
import { openPayloads } from '../../flags/reads/payloads.ts';
import { findFlag, findFlagByKey } from '../../flags/rows/flags.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { serialOf } from '../serial.ts';
import type { Flags } from './dependencies.ts';
import { FLAGS_PREFIX } from './feature-flags.ts';

/** Adds the route by which servers read the payload of a flag for remote configuration. */
export function flagPayloadRoutes(
  app: App,
  { pool, keyring, flags }: Pick<ApiDependencies, 'pool' | 'keyring'> & { flags: Flags },
): void {
  app.get(
    `${FLAGS_PREFIX}:id/remote_config/`,
    {
      config: { access: { scope: 'feature_flag:read', forSdks: true } },
      schema: {
        tags: ['feature flags'],
        summary: 'The payload of a feature flag for remote configuration',
        description:
          'The key is a personal one, or the secret token of the project. Encrypted payloads are told in clear. The path names the flag by its key or its id; without a payload, the answer is empty.',
        params: z.object({ project_id: z.string(), id: z.string() }),
        querystring: z.object({
          token: z.string().max(200).optional().meta({
            description: "The project's public key. It says which project `@current` is.",
          }),
        }),
        response: {
          200: z.string().meta({ description: 'A JSON text that contains the payload, which is JSON.' }),
        },
      },
    },
    async (request, reply) => {
      const { id: projectId } = request.secretOf ?? request.project;
      const { id: name } = request.params;
      const flagId = serialOf(name);
      const row =
        (await findFlagByKey(pool, projectId, name)) ??
        (flagId === undefined ? undefined : await findFlag(pool, { projectId, flagId }));
      if (!row || row.deleted || !row.is_remote_configuration) throw errors.notFound();
      const { payloads = {} } = parseExactJson(row.filters) as { payloads?: Record<string, string> };
      const known = row.has_encrypted_payloads ? openPayloads(keyring, row) : payloads;
      flags.calls.note(projectId, row.key);
      const payload = known.true;
      return reply
        .header('content-type', 'application/json; charset=utf-8')
        .header('cache-control', 'private, no-store')
        .serializer((text: string) => text)
        .send(payload === undefined ? '' : JSON.stringify(payload));
    },
  );
}
