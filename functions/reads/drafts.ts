import { isDeepStrictEqual } from 'node:util';
import type { Keyring } from '../../secrets/envelope.ts';
import type { DraftRow } from '../rows/drafts.ts';
import type { FunctionRow } from '../rows/functions.ts';
import type { CompiledContent, Content, InputSchema, StoredInputs } from '../rules/definition.ts';
import { keepsSecret } from '../rules/inputs.ts';
import {
  type ContentField,
  otherFields,
  type SourceContent,
  sourceInputs,
  sourceOf,
} from '../rules/source.ts';
import {
  counterpart,
  NO_SECRETS,
  openInputs,
  openSecrets,
  SECRETS_OF,
  type SecretInputs,
  type SecretKeys,
} from './secrets.ts';
import { shownContent } from './shown-function.ts';

type Mapped = Pick<Content, 'mappings'>;

/** The secrets under which a draft is compiled: its own ones, and for all others those of the function. */
export const effectiveSecrets = (
  live: SecretInputs,
  own: SecretInputs,
  { mappings }: Mapped,
): SecretInputs => ({
  inputs: { ...live.inputs, ...own.inputs },
  mappings: (mappings ?? []).map(({ name = null }, index) => ({
    name,
    inputs: {
      ...counterpart(live.mappings, name, index)?.inputs,
      ...counterpart(own.mappings, name, index)?.inputs,
    },
  })),
});

/**
 * Returns the secrets that a draft replaces after a change: those that the change gives a value, and those that the draft
 * replaced before. The others stay with the function, and are found there when the draft is published.
 */
export function ownSecrets(compiled: CompiledContent, given: Content, before: SecretInputs): SecretInputs {
  const own = (
    schemas: readonly InputSchema[],
    inputs: Content['inputs'],
    values: StoredInputs,
    earlier: StoredInputs,
  ): StoredInputs => {
    const secret = schemas.filter((schema) => schema.secret).map(({ key }) => key);
    const entries = secret.flatMap((key): [string, StoredInputs[string]][] => {
      const isGiven = Object.hasOwn(inputs, key) && !keepsSecret(inputs[key]);
      const value = isGiven ? values[key] : Object.hasOwn(earlier, key) ? earlier[key] : undefined;
      return value ? [[key, value]] : [];
    });
    return sourceInputs(Object.fromEntries(entries));
  };
  return {
    inputs: own(compiled.inputs_schema, given.inputs, compiled.inputs, before.inputs),
    mappings: (compiled.mappings ?? []).map((mapping, index) => {
      const { name = null, inputs_schema: schemas, inputs } = mapping;
      const earlier = counterpart(before.mappings, name, index)?.inputs ?? {};
      return {
        name,
        inputs: own(schemas ?? [], given.mappings?.[index]?.inputs ?? {}, inputs ?? {}, earlier),
      };
    }),
  };
}

/** What a function would be made of if its draft were published. Without a draft: what it is made of. */
export const draftedRow = (row: FunctionRow, draft: Pick<DraftRow, 'content'> | undefined): FunctionRow =>
  draft ? { ...row, ...draft.content } : row;

/** The secrets that a draft replaces, and all that it is compiled under. */
export function draftSecrets(
  keyring: Keyring | undefined,
  row: FunctionRow,
  draft: Pick<DraftRow, 'secrets' | 'content'> | undefined,
): { live: SecretInputs; own: SecretInputs; all: SecretInputs } {
  const live = openInputs(keyring, row);
  const own = draft ? openSecrets(keyring, SECRETS_OF.draft(row.id), draft.secrets) : NO_SECRETS;
  return { live, own, all: effectiveSecrets(live, own, draftedRow(row, draft)) };
}

/** Names the secret inputs that have a value in a draft: its own ones, and those that it keeps. */
function draftKeys(row: FunctionRow, { content, secret_keys: own }: ShownDraft): SecretKeys {
  const names = (row.mappings ?? []).map(({ name = null }, index) => ({
    name,
    keys: row.secret_keys.mappings[index] ?? [],
  }));
  const keys = (schemas: readonly InputSchema[], ...sets: (readonly string[])[]) =>
    schemas
      .filter(({ secret, key }) => secret && sets.some((one) => one.includes(key)))
      .map(({ key }) => key);
  return {
    inputs: keys(content.inputs_schema, row.secret_keys.inputs, own.inputs),
    mappings: (content.mappings ?? []).map(({ name = null, inputs_schema: schemas }, index) =>
      keys(schemas ?? [], counterpart(names, name, index)?.keys ?? [], own.mappings[index] ?? []),
    ),
  };
}

type ShownDraft = Pick<DraftRow, 'content' | 'secret_keys'>;

/** Returns a draft as the API shows it, without secrets. */
export const shownDraft = (row: FunctionRow, draft: ShownDraft) =>
  shownContent({ ...draft.content, secret_keys: draftKeys(row, draft) });

/** Returns what of a function users write as the API shows it, without secrets. */
export const shownSource = (source: SourceContent, secretKeys: SecretKeys) =>
  shownContent({ ...source, secret_keys: secretKeys });

/** A field in which a draft differs from what runs. */
export interface DraftChange {
  field: ContentField;
  live: unknown;
  draft: unknown;
  /** The secret inputs that get another value. Those of a mapping come after its place and `__`. */
  secret_inputs: string[];
}

/** Lists the fields in which a draft differs from what runs, in the order of the alphabet. Secrets are hidden. */
export function draftChanges(
  keyring: Keyring | undefined,
  row: FunctionRow,
  draft: Pick<DraftRow, 'content' | 'secrets' | 'secret_keys'>,
): DraftChange[] {
  const { live, own } = draftSecrets(keyring, row, draft);
  const isOther = (one: unknown, other: unknown) => one !== undefined && !isDeepStrictEqual(one, other);
  const others = (mine: StoredInputs, theirs: StoredInputs) =>
    Object.keys(mine).filter((key) => isOther(mine[key], sourceInputs(theirs)[key]));
  const secrets: Partial<Record<ContentField, string[]>> = {
    inputs: others(own.inputs, live.inputs),
    mappings: own.mappings.flatMap(({ name, inputs }, index) =>
      others(inputs, counterpart(live.mappings, name, index)?.inputs ?? {}).map((key) => `${index}__${key}`),
    ),
  };
  const source = sourceOf(row);
  const replaced = (['inputs', 'mappings'] as const).filter((field) => secrets[field]?.length);
  const fields = new Set<ContentField>([...otherFields(source, draft.content), ...replaced]);
  const [now, then] = [shownSource(source, row.secret_keys), shownDraft(row, draft)];
  return [...fields].toSorted().map((field) => ({
    ...{ field, live: now[field], draft: then[field] },
    secret_inputs: secrets[field] ?? [],
  }));
}
