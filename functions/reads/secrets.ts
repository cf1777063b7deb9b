import { isDeepStrictEqual } from 'node:util';
import { type Keyring, open, SecretError, seal } from '../../secrets/envelope.ts';
import type { FunctionRow } from '../rows/functions.ts';
import type { CompiledContent, InputSchema, StoredInputs, StoredMapping } from '../rules/definition.ts';
import { sourceInputs } from '../rules/source.ts';

/** The secret inputs of a function. */
export interface SecretInputs {
  inputs: StoredInputs;
  /** Those of the mappings, in their order. */
  mappings: { name: string | null; inputs: StoredInputs }[];
}

/** Which inputs are secret: those of the function, and those of each mapping. */
export type SecretKeys = FunctionRow['secret_keys'];

export const NO_SECRETS: SecretInputs = Object.freeze({ inputs: {}, mappings: [] });

/** Bind secrets to their rows: copied to another row, they cannot be decrypted. */
export const SECRETS_OF = {
  function: (functionId: string) => `functions/${functionId}/secrets`,
  draft: (functionId: string) => `functions/${functionId}/draft/secrets`,
  revision: (functionId: string, version: number) => `functions/${functionId}/revisions/${version}/secrets`,
} as const;

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

/** The inputs of a function, with the secret ones apart. */
export interface DividedInputs {
  inputs: StoredInputs;
  mappings: StoredMapping[] | null;
  secrets: SecretInputs;
}

/** Takes the secret inputs out of compiled ones. */
export function divideInputs(
  content: Pick<CompiledContent, 'inputs' | 'inputs_schema' | 'mappings'>,
): DividedInputs {
  const [inputs, secret] = divide(content.inputs_schema, content.inputs);
  const divided = content.mappings?.map((mapping): { shown: StoredMapping; secret: StoredInputs } => {
    const [shown, hidden] = divide(mapping.inputs_schema ?? [], mapping.inputs ?? {});
    return { shown: { ...mapping, inputs: shown }, secret: hidden };
  });
  return {
    inputs,
    mappings: divided?.map(({ shown }) => shown) ?? null,
    secrets: {
      inputs: secret,
      mappings: (divided ?? []).map((one) => ({ name: one.shown.name ?? null, inputs: one.secret })),
    },
  };
}

/** Names secret inputs without their values. */
export const secretKeysOf = ({ inputs, mappings }: SecretInputs): SecretKeys => ({
  inputs: Object.keys(inputs),
  mappings: mappings.map((one) => Object.keys(one.inputs)),
});

/** Seals secret inputs for a row. Null: there are none. */
export function sealSecrets(
  keyring: Keyring | undefined,
  context: string,
  secrets: SecretInputs,
): string | null {
  const keys = secretKeysOf(secrets);
  if ([keys.inputs, ...keys.mappings].every((one) => one.length === 0)) return null;
  return seal(needed(keyring), JSON.stringify(secrets), context);
}

/** Reads the secret inputs of a row. Throws a SecretError if that fails. */
export function openSecrets(
  keyring: Keyring | undefined,
  context: string,
  sealed: string | null,
): SecretInputs {
  if (sealed === null) return NO_SECRETS;
  return JSON.parse(open(needed(keyring), sealed, context)) as SecretInputs;
}

/** The columns that hold the inputs of a function. */
export type StoredContent = Pick<FunctionRow, 'inputs' | 'mappings' | 'secrets' | 'secret_keys'>;

/** Prepares compiled inputs for storing: secret ones are sealed apart from the others. */
export function sealInputs(
  keyring: Keyring | undefined,
  functionId: string,
  content: Pick<CompiledContent, 'inputs' | 'inputs_schema' | 'mappings'>,
): StoredContent {
  const { inputs, mappings, secrets } = divideInputs(content);
  return {
    ...{ inputs, mappings, secret_keys: secretKeysOf(secrets) },
    secrets: sealSecrets(keyring, SECRETS_OF.function(functionId), secrets),
  };
}

/** Reads the secret inputs of a stored function. Throws a SecretError if that fails. */
export const openInputs = (
  keyring: Keyring | undefined,
  { id, secrets }: Pick<FunctionRow, 'id' | 'secrets'>,
): SecretInputs => openSecrets(keyring, SECRETS_OF.function(id), secrets);

/** Finds a mapping among others: the one with its name, or else the nameless one in its place. */
export function counterpart<T extends { name?: string | null }>(
  others: readonly T[],
  name: string | null,
  index: number,
): T | undefined {
  const found = name === null ? others[index] : others.find((one) => one.name === name);
  return found && (found.name ?? null) === name ? found : undefined;
}

/** Answers whether two functions have the same secrets. What is compiled from them does not count. */
export function isSameSecrets(one: SecretInputs, other: SecretInputs): boolean {
  const bare = ({ inputs, mappings }: SecretInputs) => ({
    inputs: sourceInputs(inputs),
    mappings: mappings
      .map((mapping, index) => ({ index, inputs: sourceInputs(mapping.inputs) }))
      .filter((mapping) => Object.keys(mapping.inputs).length > 0),
  });
  return isDeepStrictEqual(bare(one), bare(other));
}
