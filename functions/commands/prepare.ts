import { refuse } from '../../refusals.ts';
import type { FunctionSource } from '../compile.ts';
import { counterpart, NO_SECRETS, openInputs, type SecretInputs, sealInputs } from '../reads/secrets.ts';
import type { FunctionFields, FunctionRow, Origins } from '../rows/functions.ts';
import type {
  CompiledContent,
  Content,
  GivenFilters,
  GivenInput,
  GivenMapping,
  GivenMasking,
  InputSchema,
} from '../rules/definition.ts';
import { keepIntegrations } from '../rules/inputs.ts';
import { MAX_HOG_BYTES } from '../rules/limits.ts';
import type { OnError } from '../rules/on-error.ts';
import type { DeliveryPolicy } from '../rules/policy.ts';
import { type FunctionTypeName, typeOf } from '../rules/types.ts';
import { surroundingsOf } from '../surroundings.ts';
import type { Template } from '../templates/template.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import { refusing } from './refusals.ts';

/** What decides what a function does. Fields that are left out keep their values. */
export interface ContentInput {
  hog?: string | undefined;
  inputs_schema?: InputSchema[] | null | undefined;
  inputs?: Record<string, GivenInput | null> | null | undefined;
  filters?: GivenFilters | null | undefined;
  masking?: GivenMasking | null | undefined;
  mappings?: GivenMapping[] | null | undefined;
}

/** What a user sets about a function. */
export interface FunctionInput extends ContentInput {
  type?: FunctionTypeName | undefined;
  name?: string | null | undefined;
  description?: string | undefined;
  icon_url?: string | null | undefined;
  template_id?: string | null | undefined;
  enabled?: boolean | undefined;
  deleted?: boolean | undefined;
  execution_order?: number | null | undefined;
  on_error?: OnError | null | undefined;
  /** Null: none. */
  delivery?: DeliveryPolicy | null | undefined;
  paused?: boolean | undefined;
}

export interface Subject {
  projectId: number;
  functionId: string;
  /** The function as it is stored. Undefined: it is a new one. */
  current?: FunctionRow | undefined;
  /** The secrets that are saved. Default: those of the function as it is stored. */
  secrets?: SecretInputs | undefined;
}

export type ContentFields = Pick<
  FunctionFields,
  | 'hog'
  | 'inputs_schema'
  | 'inputs'
  | 'filters'
  | 'masking'
  | 'mappings'
  | 'secrets'
  | 'secret_keys'
  | 'bytecode'
  | 'transpiled'
  | 'warnings'
  | 'compiled_from'
  | 'compile_error'
>;

export type PrepareDependencies = Pick<
  FunctionCommandDependencies,
  'pool' | 'compiler' | 'compiling' | 'keyring' | 'actions' | 'cohorts'
>;

/** Returns what a new function with a template does where its user says nothing. */
export const contentOf = (template: Template | undefined): ContentInput =>
  template ? { hog: template.hog, inputs_schema: template.inputs_schema } : {};

function withIntegrations(
  mapping: GivenMapping,
  index: number,
  current: FunctionRow | undefined,
): GivenMapping {
  const before = counterpart(current?.mappings ?? [], mapping.name ?? null, index)?.inputs_schema;
  const schemas = mapping.inputs_schema;
  return before && schemas ? { ...mapping, inputs_schema: keepIntegrations(schemas, before) } : mapping;
}

/** Merges what a user sets into what is stored. */
export function mergeContent(current: FunctionRow | undefined, input: ContentInput): Content {
  const { hog = current?.hog, inputs_schema, inputs, filters, masking, mappings } = input;
  if (!hog) throw refuse.invalid('hog', 'Required.', { code: 'required' });
  const given = <T>(sent: T | null | undefined, kept: T | undefined, otherwise: T): T =>
    sent === undefined ? (kept ?? otherwise) : (sent ?? otherwise);
  const merged = given<Content['mappings']>(
    mappings ? mappings.map((one, index) => withIntegrations(one, index, current)) : mappings,
    current?.mappings ?? undefined,
    null,
  );
  return {
    hog,
    inputs_schema: keepIntegrations(
      given(inputs_schema, current?.inputs_schema, []),
      current?.inputs_schema ?? [],
    ),
    inputs: given<Content['inputs']>(inputs, current?.inputs, {}),
    filters: given(filters, current?.filters, {}),
    masking: masking === undefined ? (current?.masking ?? null) : masking,
    // An empty list in a new function means that it has no mappings. In a change it means that it never runs.
    mappings: current || merged === null || merged.length > 0 ? merged : null,
  };
}

/** Refuses what a type does not have. */
export function checkContent(type: FunctionTypeName, { hog, mappings }: Content): void {
  if (Buffer.byteLength(hog) > MAX_HOG_BYTES) {
    throw refuse.invalid(
      'hog',
      'HOG code exceeds maximum size of 100KB. Simplify the function or split it into several functions.',
    );
  }
  if (mappings && !typeOf(type).hasMappings) {
    throw refuse.invalid('mappings', 'Mappings are only allowed for destinations.');
  }
}

/** Refuses a rule for failures of a function that no event waits for. */
export function checkOnError(type: FunctionTypeName, { on_error }: Pick<FunctionInput, 'on_error'>): void {
  if (on_error && type !== 'transformation') {
    throw refuse.invalid('on_error', 'Only transformations have `on_error`.');
  }
}

/** A function as it would be stored, and what it was compiled from. */
interface Compiled {
  compiled: CompiledContent;
  origins: Origins | null;
}

/**
 * Checks and compiles a function after a change, in a thread and without a connection or a lock in hand: both may take
 * long.
 */
export async function compileContent(
  deps: PrepareDependencies,
  { projectId, current, secrets: saved }: Omit<Subject, 'functionId'>,
  type: FunctionTypeName,
  content: Content,
  isEnabled: boolean,
  signal?: AbortSignal,
): Promise<Compiled> {
  checkContent(type, content);
  return refusing(async () => {
    const secrets = saved ?? (current ? openInputs(deps.keyring, current) : NO_SECRETS);
    const { surroundings, origins } = await surroundingsOf(deps, projectId, content);
    const source: FunctionSource = { type, content, secrets, isEnabled, ...surroundings };
    const asker = { projectId, signal };
    const compiled = await deps.compiling.take(asker, () => deps.compiler.compile(projectId, source, signal));
    return { compiled, origins };
  });
}

/** Compiles a function and seals its secrets, so that it can be stored. */
export async function prepareContent(
  deps: PrepareDependencies,
  subject: Subject,
  type: FunctionTypeName,
  content: Content,
  isEnabled: boolean,
  signal?: AbortSignal,
): Promise<ContentFields> {
  const { compiled, origins } = await compileContent(deps, subject, type, content, isEnabled, signal);
  const { hog, inputs_schema, filters, masking, bytecode, transpiled, warnings } = compiled;
  const sealed = await refusing(() => sealInputs(deps.keyring, subject.functionId, compiled));
  return {
    ...{ hog, inputs_schema, filters, masking, bytecode, transpiled, warnings },
    ...{ compiled_from: origins, compile_error: null },
    ...sealed,
  };
}
