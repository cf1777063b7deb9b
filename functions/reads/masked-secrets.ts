import { nextTurn } from '../../db/loop-turns.ts';
import type { Pool } from '../../db/pool.ts';
import { type Keyring, SecretError } from '../../secrets/envelope.ts';
import { pageSecretHolders, type SecretHolder } from '../rows/secret-holders.ts';
import { MASK } from '../rules/inputs.ts';
import { openSecrets, SECRETS_OF, type SecretInputs } from './secrets.ts';

/** A function whose secrets hold the mask that interfaces show, in place of a real value. */
export interface MaskedFunction
  extends Pick<SecretHolder, 'id' | 'name' | 'type' | 'enabled' | 'updated_at'> {
  /** The keys of these inputs. Those of a mapping come after its place and `__`. */
  inputKeys: string[];
  draftInputKeys: string[];
}

const PAGE = 100;

/**
 * Lists functions of a project that send a mask to a service where a secret should be, those that were changed last first.
 * The real value is lost, so somebody has to enter it again. Secrets are compared, and nothing of them is returned.
 */
export async function findMaskedSecrets(
  pool: Pool,
  keyring: Keyring | undefined,
  projectId: number,
  signal: AbortSignal,
): Promise<MaskedFunction[]> {
  const found: MaskedFunction[] = [];
  for (let after: string | null = null; ; ) {
    signal.throwIfAborted();
    const page: SecretHolder[] = await pageSecretHolders(pool, projectId, after, PAGE);
    for (const { secrets, draft_secrets: draft, ...one } of page) {
      const inputKeys = maskedKeys(keyring, SECRETS_OF.function(one.id), secrets);
      const draftInputKeys = maskedKeys(keyring, SECRETS_OF.draft(one.id), draft);
      if (inputKeys.length + draftInputKeys.length > 0) found.push({ ...one, inputKeys, draftInputKeys });
    }
    if (page.length < PAGE) break;
    after = page.at(-1)?.id ?? null;
    await nextTurn();
  }
  return found.toSorted((a, b) => (a.updated_at < b.updated_at ? 1 : -1));
}

function maskedKeys(keyring: Keyring | undefined, context: string, sealed: string | null): string[] {
  const keysOf = (inputs: SecretInputs['inputs'], before = '') =>
    Object.entries(inputs)
      .filter(([, { value }]) => value === MASK)
      .map(([key]) => `${before}${key}`);
  try {
    const { inputs, mappings } = openSecrets(keyring, context, sealed);
    return [
      ...keysOf(inputs),
      ...mappings.flatMap((one, index) => keysOf(one.inputs, `${index}__`)),
    ].toSorted();
  } catch (error) {
    // One secret that cannot be opened hides no other. `doctor` tells of it.
    if (keyring && error instanceof SecretError) return [];
    throw error;
  }
}
