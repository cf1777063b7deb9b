// Checks and compiles what a function is made of. It knows neither the database nor threads.
import { type Expr, nodesOf, type Program } from '../hog/ast/index.ts';
import { type Bytecode, compileBytecode, compileWithPlaces, type Places } from '../hog/bytecode/index.ts';
import { SourceError } from '../hog/errors.ts';
import { compileJavaScript } from '../hog/javascript/index.ts';
import type { Parser } from '../hog/parser/index.ts';
import {
  type ActionStep,
  actionIds,
  CohortInliner,
  Cohorts,
  FilterError,
  functionCohorts,
  functionFilterExpression,
  functionHogqlSources,
  readFilters,
  readFunctionFilters,
} from '../properties/index.ts';
import { parseExactJson } from '../values/exact-json.ts';
import { readsAsSubtraction, unknownNames } from './code-faults.ts';
import { counterpart, type SecretInputs } from './reads/secrets.ts';
import {
  type CompiledContent,
  type Content,
  FunctionError,
  type GivenFilters,
  type GivenInput,
  type GivenMapping,
  type InputSchema,
  type StoredInput,
  type StoredInputs,
  type StoredMapping,
} from './rules/definition.ts';
import { requireUniqueKeys, type SettledInput, settleInputs, sortInputs } from './rules/inputs.ts';
import { type FunctionTypeName, typeOf } from './rules/types.ts';
import { type SiteInputs, type SiteMapping, siteProgram, siteTemplate, Template } from './site.ts';

/** A cohort that filters name, or that is named by one of those. */
export interface CohortSource {
  id: number;
  name: string;
  isStatic: boolean;
  /** JSON, spelled as it was stored. */
  filters: string;
}

/** What a function is compiled from. It can be sent to a thread. */
export interface FunctionSource {
  type: FunctionTypeName;
  content: Content;
  /** The secrets that are stored already. */
  secrets: SecretInputs;
  /** Whether filters that cannot be compiled are a fault. A function that does not run may have such filters. */
  isEnabled: boolean;
  /** The project's conditions that leave out events of test accounts. */
  testAccounts: unknown;
  /** The steps of the actions that the filters name. */
  actions: [id: number, steps: readonly ActionStep[]][];
  /** The cohorts that the filters name, and those that these name. Absent: none. */
  cohorts?: readonly CohortSource[];
  /** Milliseconds. Relative dates in filters count from here. */
  now: number;
  timezone: string;
}

type Filtered = Pick<Content, 'filters' | 'mappings'>;

const documentsOf = ({ filters, mappings }: Filtered) => [
  filters,
  ...(mappings ?? []).map((one) => one.filters ?? {}),
];

/** Answers whether filters leave out the project's test accounts. */
export const namesTestAccounts = (content: Filtered): boolean =>
  documentsOf(content).some((document) => Boolean(document.filter_test_accounts));

/** Finds ids in filters. Throws no error: filters that cannot be read name none. */
function idsIn(
  content: Filtered,
  find: (filters: ReturnType<typeof readFunctionFilters>) => readonly number[],
): number[] {
  const ids = documentsOf(content).flatMap((document) => {
    try {
      return find(readFunctionFilters(document));
    } catch {
      return [];
    }
  });
  return [...new Set(ids)];
}

/** Returns the ids of the actions that filters name. */
export const namedActions = (content: Filtered): number[] => idsIn(content, actionIds);

/** Returns the ids of the cohorts that filters name, with those of the project's test accounts and of actions. */
export const namedCohorts = (
  content: Filtered,
  testAccounts: unknown,
  actions: ReadonlyMap<number, readonly ActionStep[]>,
): number[] =>
  idsIn(content, (filters) =>
    functionCohorts(filters, { testAccounts: readFilters(testAccounts ?? []), actions }),
  );

/** Checks and compiles a function. Throws a FunctionError that names the first field that is wrong. */
export async function compileFunction(parser: Parser, source: FunctionSource): Promise<CompiledContent> {
  const { content, type, secrets } = source;
  const job = new Compilation(parser, source);
  requireUniqueKeys(content.inputs_schema, 'inputs_schema');
  if (typeOf(type).language === 'ts') refuseSecretInputs(content.inputs_schema, 'inputs_schema');
  const inputs = await job.inputs(content.inputs_schema, content.inputs, secrets.inputs, 'inputs');
  const mappings: Mapped[] = [];
  for (const [index, one] of (content.mappings ?? []).entries()) mappings.push(await job.mapping(one, index));
  // A mapping chooses the events. What is left to the function are conditions that hold for all of them.
  const { events: _events, actions: _actions, ...common } = content.filters;
  const filters = await job.filters(mappings.length > 0 ? common : content.filters, 'filters');
  const missing = missingActions(source);
  const compiled = {
    ...content,
    inputs: inputs.stored,
    filters: filters.stored,
    masking: await job.masking(content.masking),
    mappings: content.mappings ? mappings.map(({ stored }) => stored) : null,
  };
  if (typeOf(type).language === 'ts') {
    const transpiled = siteProgram(content.hog, {
      inputs: inputs.site,
      filters: filters.tree,
      mappings: content.mappings ? mappings.map(({ site }) => site) : null,
    });
    return { ...compiled, bytecode: null, transpiled, warnings: missing };
  }
  const { bytecode, warnings } = await job.program(content.hog);
  return { ...compiled, bytecode, transpiled: null, warnings: [...warnings, ...missing] };
}

/** Says which actions filters name that are not there. Such a condition matches nothing, and somebody may bring the action back. */
function missingActions({ content, actions }: FunctionSource): string[] {
  const known = new Set(actions.map(([id]) => id));
  return namedActions(content)
    .filter((id) => !known.has(id))
    .map(
      (id) =>
        `The action ${id} does not exist in this project, or was deleted. A filter on it matches no event.`,
    );
}

/** A program as JavaScript, and the names that it calls. */
export interface JavaScriptProgram {
  code: string;
  functions: string[];
  /** The lines and columns that failures name. */
  places: readonly number[];
}

/** Says for each part of bytecode where it is in the text. Null: the text no longer compiles to it. */
export async function findPlaces(parser: Parser, hog: string, bytecode: Bytecode): Promise<Places | null> {
  try {
    const { code, places } = compileWithPlaces(await parser.program(hog), hog);
    const isSame = code.length === bytecode.length && code.every((one, at) => one === bytecode[at]);
    return isSame ? places : null;
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return null;
  }
}

/** Compiles a program that was checked before to JavaScript. */
export async function compileProgram(parser: Parser, hog: string): Promise<JavaScriptProgram> {
  try {
    const { code, functions, places } = compileJavaScript(await parser.program(hog), hog, {
      keepsPlace: true,
    });
    return { code, functions, places };
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new FunctionError('hog', 'Hog code has errors.', { reason: error.withExcerpt });
  }
}

/** An input or a filter, compiled in both forms: as it is stored, and for the program of a page. */
interface Inputs {
  stored: StoredInputs;
  site: SiteInputs;
}
interface Filters {
  stored: Record<string, unknown>;
  tree: Expr;
}
interface Mapped {
  stored: StoredMapping;
  site: SiteMapping;
}

/** Matches no event. Takes the place of filters that cannot be compiled. */
const NEVER: Expr = { kind: 'constant', value: false };

/** A text that is a template may be told to be one, or may only look like one of another language. */
const LIQUID = /\{\{|\{%/;
/** A text without braces or backslashes stands for itself. */
const PLAIN = /^[^{\\]*$/;

class Compilation {
  readonly #parser: Parser;
  readonly #source: FunctionSource;
  readonly #isSite: boolean;

  constructor(parser: Parser, source: FunctionSource) {
    this.#parser = parser;
    this.#source = source;
    this.#isSite = typeOf(source.type).language === 'ts';
  }

  async program(hog: string): Promise<{ bytecode: Bytecode; warnings: string[] }> {
    const fault = (error: unknown): never => {
      if (!(error instanceof SourceError)) throw error;
      throw new FunctionError('hog', 'Hog code has errors.', { reason: error.withExcerpt });
    };
    const tree: Program = await this.#parser.program(hog).catch(fault);
    refuseHyphens(tree, hog, 'hog');
    try {
      const bytecode = compileBytecode(tree, hog);
      return { bytecode, warnings: unknownNames(bytecode, this.#source.type) };
    } catch (error) {
      return fault(error);
    }
  }

  async inputs(
    schemas: readonly InputSchema[],
    given: Readonly<Record<string, GivenInput | null>>,
    stored: StoredInputs,
    field: string,
  ): Promise<Inputs> {
    const settled = settleInputs(schemas, given, stored, field);
    const parsed = new Map<string, SettledInput & { value: unknown }>();
    const reads = new Map<string, string[]>();
    for (const one of settled) {
      const { key, secret } = one.schema;
      const names = new Set<string>();
      const place = `${field}__${key}`;
      const value = one.isTemplate
        ? await this.#parsed(templateOf(one), names, place).catch((error) => {
            throw secret && error instanceof FunctionError ? hidden(place) : error;
          })
        : one.input.value;
      parsed.set(key, { ...one, value });
      reads.set(key, [...names]);
    }
    const sorted = sortInputs(reads, field).map(
      (key) => parsed.get(key) as SettledInput & { value: unknown },
    );
    const form = this.#isSite ? 'transpiled' : 'bytecode';
    const printed = (key: string, value: unknown) => {
      try {
        return this.#printed(value);
      } catch (error) {
        if (!(error instanceof SourceError)) throw error;
        const place = `${field}__${key}`;
        const { secret = false } = parsed.get(key)?.schema ?? {};
        throw secret ? hidden(place) : new FunctionError(place, `Invalid template: ${error.message}`);
      }
    };
    return {
      site: sorted.map(({ schema, value }) => [schema.key, value]),
      stored: Object.fromEntries(
        sorted.map(({ schema, input, isTemplate, value }, order): [string, StoredInput] => [
          schema.key,
          { ...input, ...(isTemplate ? { [form]: printed(schema.key, value) } : {}), order },
        ]),
      ),
    };
  }

  /** Parses every text in a value, and notes which other inputs these texts read. */
  async #parsed(value: unknown, names: Set<string>, field: string): Promise<unknown> {
    if (typeof value === 'string') return this.#template(value, names, field);
    if (Array.isArray(value)) {
      const list: unknown[] = [];
      for (const one of value) list.push(await this.#parsed(one, names, field));
      return list;
    }
    if (typeof value !== 'object' || value === null) return value;
    const entries: [string, unknown][] = [];
    for (const [key, one] of Object.entries(value))
      entries.push([key, await this.#parsed(one, names, field)]);
    return Object.fromEntries(entries);
  }

  /** Prints every template in a value as code. */
  #printed(value: unknown): unknown {
    if (value instanceof Template)
      return this.#isSite ? siteTemplate(value.tree) : compileBytecode(value.tree);
    if (Array.isArray(value)) return value.map((one) => this.#printed(one));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.#printed(one)]));
  }

  async #template(text: string, names: Set<string>, field: string): Promise<Template> {
    try {
      const tree = await this.#templateTree(text);
      refuseHyphens(tree, text, field);
      for (const name of inputsOf(tree)) names.add(name);
      this.#refuseUnknownGlobals(tree, field);
      // Finds what no machine runs, with its place in the text.
      compileBytecode(tree, text);
      return new Template(tree);
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      const hint = LIQUID.test(text)
        ? '. The text looks like Liquid. Write {person.properties.email} with one pair of braces, or set the ' +
          '`templating` of the input to liquid.'
        : '';
      throw new FunctionError(field, `Invalid template: ${error.message}${hint}`, {
        reason: error.withExcerpt,
      });
    }
  }

  #templateTree(text: string): Promise<Expr> {
    if (PLAIN.test(text)) return Promise.resolve({ kind: 'constant', value: text });
    return this.#parser.template(text);
  }

  /** Transformations run before an event has a person and groups. */
  #refuseUnknownGlobals(tree: Expr, field: string): void {
    if (this.#source.type !== 'transformation') return;
    for (const name of globalsOf(tree)) {
      if (!MISSING_IN_TRANSFORMATIONS.has(name)) continue;
      throw new FunctionError(
        field,
        `Invalid template: Variable not available in transformations: ${name}. Transformations only have ` +
          'access to project, event, and inputs.',
      );
    }
  }

  async mapping(given: GivenMapping, index: number): Promise<Mapped> {
    const field = `mappings__${index}`;
    const schemas = given.inputs_schema ?? [];
    requireUniqueKeys(schemas, `${field}__inputs_schema`);
    if (this.#isSite) refuseSecretInputs(schemas, `${field}__inputs_schema`);
    // Secrets that were saved before, of the same mapping.
    const secrets = counterpart(this.#source.secrets.mappings, given.name ?? null, index)?.inputs ?? {};
    const inputs = await this.inputs(schemas, given.inputs ?? {}, secrets, `${field}__inputs`);
    const filters = await this.filters(given.filters ?? {}, `${field}__filters`);
    const isDisabled = given.disabled === true;
    return {
      stored: { ...given, inputs: inputs.stored, filters: filters.stored },
      site: { inputs: inputs.site, filters: filters.tree, isDisabled },
    };
  }

  async filters(given: GivenFilters, field: string): Promise<Filters> {
    const { bytecode: _bytecode, bytecode_error: _error, transpiled: _transpiled, ...document } = given;
    try {
      const tree = await this.#filterTree(document);
      const code = this.#isSite ? { transpiled: siteTemplate(tree) } : { bytecode: compileBytecode(tree) };
      return { stored: { ...document, ...code }, tree };
    } catch (error) {
      if (!(error instanceof FilterError || error instanceof SourceError)) throw error;
      const { message } = error;
      if (this.#source.isEnabled) {
        const reason = error instanceof FilterError ? error.path : error.withExcerpt;
        throw new FunctionError(field, `Invalid filter configuration: ${message}`, reason ? { reason } : {});
      }
      return { stored: { ...document, bytecode: null, bytecode_error: message }, tree: NEVER };
    }
  }

  async #filterTree(document: GivenFilters): Promise<Expr> {
    this.#refuseOtherSources(document);
    const filters = readFunctionFilters(document);
    const { now, timezone } = this.#source;
    const testAccounts = readFilters(this.#source.testAccounts ?? []);
    const actions = new Map(this.#source.actions);
    const hogql = new Map<string, Expr>();
    for (const text of functionHogqlSources(filters, { testAccounts, actions })) {
      hogql.set(text, await this.#parser.expression(text));
    }
    const moment = { now, timezone };
    const inCohort = this.#inCohort();
    return functionFilterExpression(filters, {
      ...{ moment, scope: 'realtime', hogql, testAccounts, actions, inCohort },
      nestsKeys: this.#source.type === 'internal_destination',
    });
  }

  /** Puts cohorts into one filter. */
  #inCohort(): (id: number) => Expr {
    const { type, cohorts = [], timezone } = this.#source;
    if (type === 'transformation' || this.#isSite) {
      const why = this.#isSite
        ? 'Functions that run in browsers do not know the person'
        : 'Transformations run before an event has a person';
      return () => {
        throw new FilterError(`${why}, so their filters cannot name cohorts`, '', 'unsupported');
      };
    }
    let inliner: CohortInliner | undefined;
    return (id) => {
      inliner ??= new CohortInliner(
        new Cohorts(cohorts.map((one) => ({ ...one, filters: parseExactJson(one.filters) }))),
        new Map(cohorts.map((one) => [one.id, one.name])),
        timezone,
      );
      return inliner.expression(id);
    };
  }

  /** Filters of functions that were written elsewhere may mean other things than events, which would never match here. */
  #refuseOtherSources({ source }: GivenFilters): void {
    if (source === undefined || source === null) return;
    const sources = this.#source.type === 'internal_destination' ? ['events', 'internal-events'] : ['events'];
    if (sources.includes(source as string)) return;
    const allowed = sources.map((one) => `'${one}'`).join(' or ');
    throw new FilterError(`source must be ${allowed}, not ${JSON.stringify(source)}`, 'source');
  }

  async masking(given: Content['masking']): Promise<CompiledContent['masking']> {
    if (!given) return null;
    try {
      return { ...given, bytecode: compileBytecode(await this.#templateTree(given.hash), given.hash) };
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      throw new FunctionError('masking__hash', `Invalid template: ${error.message}`, {
        reason: error.withExcerpt,
      });
    }
  }
}

/** Refuses secrets where every visitor of a page could read them. */
function refuseSecretInputs(schemas: readonly InputSchema[], field: string): void {
  const index = schemas.findIndex(({ secret }) => secret);
  if (index < 0) return;
  throw new FunctionError(
    `${field}__${index}__secret`,
    'A function that runs in browsers cannot have secret inputs: every visitor could read them.',
  );
}

const MISSING_IN_TRANSFORMATIONS: ReadonlySet<string> = new Set(['person', 'groups', 'source', 'request']);

/** What of an input is a template. The design of an email belongs to its editor. */
function templateOf({ schema, input }: SettledInput): unknown {
  if (schema.type !== 'email' && schema.type !== 'native_email') return input.value;
  const { design: _design, ...mail } = input.value as Record<string, unknown>;
  return mail;
}

/** The names that an expression reads and does not declare, such as `event`. */
function* globalsOf(tree: Expr): Generator<string> {
  for (const node of nodesOf(tree)) if (node.kind === 'field') yield (node.chain as string[])[0] as string;
}

/** The inputs that a template reads: `inputs.url` and `inputs['url']`. */
function* inputsOf(tree: Expr): Generator<string> {
  for (const node of nodesOf(tree)) {
    if (node.kind === 'field') {
      const [first, second] = node.chain as string[];
      if (first === 'inputs' && second !== undefined) yield second;
    } else if (node.kind === 'arrayAccess') {
      const { object, property } = node as unknown as { object: Expr; property: Expr };
      const isInputs = object.kind === 'field' && object.chain.length === 1 && object.chain[0] === 'inputs';
      if (isInputs && property.kind === 'constant') yield String(property.value);
    }
  }
}

/** The error of a template that is secret. Errors are logged and shown, so it says nothing of the template. */
const hidden = (field: string): FunctionError =>
  new FunctionError(
    field,
    'Invalid template: the value of this secret input cannot be read as a template. Write \\{ for a brace, or set ' +
      '`templating` to false in its schema.',
  );

function refuseHyphens(tree: Program | Expr, text: string, field: string): void {
  const found = readsAsSubtraction(tree, text);
  if (!found) return;
  const { path, key, whole, span } = found;
  throw new FunctionError(
    field,
    `${whole} is read as a subtraction. Write ${path}['${key}'] for a property whose name has a hyphen, or put spaces ` +
      'around the minus sign.',
    { reason: new SourceError('compile', 'It is here', text, span).withExcerpt },
  );
}
