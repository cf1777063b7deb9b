import { type Keyring, open, SecretError, seal } from '../../secrets/envelope.ts';
import type { FunctionRow } from '../rows/functions.ts';
import type { CompiledContent, InputSchema, StoredInputs, StoredMapping } from '../rules/definition.ts';

/** The secret inputs of a function. */
export interface SecretInputs {
  inputs: StoredInputs;
  /** Those of the mappings, in their order. */
  mappings: { name: string | null; inputs: StoredInputs }[];
}

export const NO_SECRETS: SecretInputs = Object.freeze({ inputs: {}, mappings: [] });

/** Binds a secret to its row: copied to another row, it cannot be decrypted. */
const contextOf = (functionId: string) => `functions/${functionId}/secrets`;

function needed(keyring: Keyring | undefined): Keyring {
  if (keyring) return keyring;
  throw new SecretError(
    'SLUICE_ENCRYPTION_KEYS is not set, so the secrets of functions can be neither stored nor read. Give every process the same keys.',
  );
}

/** Divides inputs into those that everybody may see and those that are secret. */
function divide(
  schemas: readonly InputSchema[],
  inputs: StoredInputs,
): [shown: StoredInputs, secret: StoredInputs] {
  const hidden = new Set(schemas.filter(({ secret }) => secret).map(({ key }) => key));
  const part = (isHidden: boolean) =>
    Object.fromEntries(Object.entries(inputs).filter(([key]) => hidden.has(key) === isHidden));
  return [part(false), part(true)];
}

/** The columns that hold the inputs of a function. */
export type StoredContent = Pick<FunctionRow, 'inputs' | 'mappings' | 'secrets' | 'secret_keys'>;

/** Prepares compiled inputs for storing: secret ones are sealed apart from the others. */
export function sealInputs(
  keyring: Keyring | undefined,
  functionId: string,
  content: Pick<CompiledContent, 'inputs' | 'inputs_schema' | 'mappings'>,
): StoredContent {
  const [inputs, secret] = divide(content.inputs_schema, content.inputs);
  const divided = content.mappings?.map((mapping): { shown: StoredMapping; secret: StoredInputs } => {
    const [shown, hidden] = divide(mapping.inputs_schema ?? [], mapping.inputs ?? {});
    return { shown: { ...mapping, inputs: shown }, secret: hidden };
  });
  const mappings = divided?.map(({ shown }) => shown) ?? null;
  const keys = {
    inputs: Object.keys(secret),
    mappings: (divided ?? []).map((one) => Object.keys(one.secret)),
  };
  const shown = { inputs, mappings, secret_keys: keys };
  if ([keys.inputs, ...keys.mappings].every((one) => one.length === 0)) return { ...shown, secrets: null };
  const secrets: SecretInputs = {
    inputs: secret,
    mappings: (divided ?? []).map((one) => ({ name: one.shown.name ?? null, inputs: one.secret })),
  };
  return { ...shown, secrets: seal(needed(keyring), JSON.stringify(secrets), contextOf(functionId)) };
}

/** Reads the secret inputs of a stored function. Throws a SecretError if that fails. */
export function openInputs(
  keyring: Keyring | undefined,
  { id, secrets }: Pick<FunctionRow, 'id' | 'secrets'>,
): SecretInputs {
  if (secrets === null) return NO_SECRETS;
  return JSON.parse(open(needed(keyring), secrets, contextOf(id))) as SecretInputs;
}
