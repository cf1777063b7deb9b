import { withoutSecretKeys } from '../../values/marked-secrets.ts';
import { findKind } from '../kinds/registry.ts';
import type { IntegrationRow } from '../rows/integrations.ts';

/** What answers and the activity log show of an integration: no secret, and no key of a kind that no longer exists. */
export function shownIntegration({ kind: name, config: stored }: Pick<IntegrationRow, 'kind' | 'config'>) {
  const kind = findKind(name);
  const config = kind ? withoutSecretKeys(kind.fields, stored) : {};
  const given = typeof config.name === 'string' && config.name !== '' ? config.name : undefined;
  return { kind: name, config, display_name: given ?? kind?.displayName?.(config) ?? kind?.title ?? name };
}
