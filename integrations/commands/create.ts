import { transaction } from '../../db/pool.ts';
import { lockProject } from '../../db/projects.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { checkConfig } from '../kinds/config.ts';
import type { RawConfig } from '../kinds/kind.ts';
import { findKind, KIND_NAMES } from '../kinds/registry.ts';
import { sealConfig } from '../reads/settings.ts';
import { shownIntegration } from '../reads/shown.ts';
import {
  hasIntegrations,
  type IntegrationRow,
  insertIntegration,
  keyOf,
  nextIntegrationId,
} from '../rows/integrations.ts';
import { INTEGRATION_LIMITS } from '../rules/limits.ts';
import { auditIntegration } from './audit.ts';
import type { IntegrationCommandDependencies } from './dependencies.ts';
import { refusing } from './refusals.ts';

/** Creates an integration. */
export async function createIntegration(
  { pool, keyring }: IntegrationCommandDependencies,
  actor: Actor,
  projectId: number,
  input: { kind: string; config: RawConfig },
): Promise<IntegrationRow> {
  const kind = findKind(input.kind);
  // The message does not repeat the value: whoever mixes up two fields may have sent a secret.
  if (!kind) {
    throw refuse.invalid('kind', `Not a valid choice. Use one of ${KIND_NAMES.join(', ')}.`, {
      code: 'invalid_choice',
    });
  }
  const config = refusing(() => checkConfig(kind, input.config));
  return transaction(pool, async (client) => {
    if (!(await lockProject(client, projectId))) throw refuse.absent('Project not found.');
    const { integrations: most } = INTEGRATION_LIMITS;
    if (await hasIntegrations(client, projectId, most)) {
      throw refuse.invalid(
        null,
        `This project already has ${most} integrations, the most that it may have. Delete one before you create another.`,
      );
    }
    const id = await nextIntegrationId(client);
    const row = await insertIntegration(client, {
      ...refusing(() => sealConfig(keyring, id, kind, config)),
      ...{ project_id: projectId, id, kind: kind.kind },
      created_by: actor.kind === 'user' ? actor.userId : null,
    });
    const { kind: name, config: shown } = shownIntegration(row);
    await auditIntegration(client, actor, keyOf(row), 'created', { kind: name, config: shown });
    return row;
  });
}
