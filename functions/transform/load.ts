import { createHash } from 'node:crypto';
import type { Queryable } from '../../db/pool.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { type Keyring, SecretError } from '../../secrets/envelope.ts';
import { cacheOfSize } from '../../values/cache-of-size.ts';
import type { JavaScriptProgram } from '../compile.ts';
import type { FunctionCompiler } from '../compiler.ts';
import { IntegrationError, type Integrations } from '../effects.ts';
import { integrationsOf } from '../invocation.ts';
import { runningContent } from '../reads/running-content.ts';
import type { FunctionRow } from '../rows/functions.ts';
import { enabledTransformations, transformationVersion } from '../rows/transformations.ts';
import { FunctionError } from '../rules/definition.ts';
import { variantsOf } from '../rules/variants.ts';
import type { Chain, Transformation } from './definition.ts';
import { isNative } from './native.ts';

export interface LoadDependencies {
  pool: Queryable;
  keyring: Keyring | undefined;
  compiler: FunctionCompiler;
  integrations: Integrations;
  /** The address under which users see Sluice. */
  site: string;
}

const PROGRAM_BYTES = 16 * 1024 * 1024;
const SMALLEST = 1_000;
const NOTHING: JavaScriptProgram = { code: '', functions: [], places: [] };

/** Reads the transformations of projects, and compiles them. */
export class Loader {
  readonly #deps: LoadDependencies;
  /** Programs by their text. A change of an input needs no other compilation. */
  readonly #programs = cacheOfSize<string, JavaScriptProgram>(PROGRAM_BYTES, ({ code }) => code.length);

  constructor(deps: LoadDependencies) {
    this.#deps = deps;
  }

  /** Returns undefined if the project has none. */
  async load(projectId: number): Promise<Chain | undefined> {
    const { pool, site } = this.#deps;
    // The version comes first: a change between the two is then read again, and not overlooked.
    const version = await transformationVersion(pool, projectId);
    if (version === null) return undefined;
    const rows = await enabledTransformations(pool, projectId);
    const transformations: Transformation[] = [];
    for (const row of rows) transformations.push(await this.#one(row));
    // Compiled code takes several times as much as its text.
    const size = SMALLEST + 4 * JSON.stringify(transformations).length;
    return { projectId, version, url: `${site}/project/${projectId}`, transformations, size };
  }

  async #one(row: FunctionRow): Promise<Transformation> {
    const { keyring } = this.#deps;
    const known = {
      ...{ id: row.id, name: row.name ?? '', version: row.version, onError: row.on_error ?? 'pass' },
      filters: (row.filters.bytecode ?? null) as Bytecode | null,
      ...{ inputs: {}, given: {}, secret: [], program: NOTHING, problem: null },
      native: isNative(row.hog) ? row.hog : null,
    };
    try {
      const content = runningContent(keyring, row);
      const [variant] = variantsOf(content);
      if (!variant) return known;
      const { given } = await integrationsOf(this.#deps, variant, {
        ...{ projectId: row.project_id, seed: row.id, isMocked: true },
      });
      return {
        ...{ ...known, given, inputs: variant.inputs },
        secret: variant.schemas.filter((one) => one.secret).map(({ key }) => key),
        program: await this.#program(row.project_id, content.hog),
      };
    } catch (error) {
      if (
        !(error instanceof FunctionError || error instanceof SecretError || error instanceof IntegrationError)
      ) {
        throw error;
      }
      return { ...known, problem: error.message };
    }
  }

  async #program(projectId: number, hog: string): Promise<JavaScriptProgram> {
    const key = createHash('sha256').update(hog).digest('base64');
    let program = this.#programs.get(key);
    if (!program) {
      program = await this.#deps.compiler.program(projectId, hog);
      this.#programs.set(key, program);
    }
    return program;
  }
}
