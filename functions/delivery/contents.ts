import { LRUCache } from 'lru-cache';
import type { Pool } from '../../db/pool.ts';
import { findProject } from '../../db/projects.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import { SecretError } from '../../secrets/envelope.ts';
import type { FunctionCompiler } from '../compiler.ts';
import { runningContent } from '../reads/running-content.ts';
import { counterpart, openInputs, openSecrets, SECRETS_OF, type SecretInputs } from '../reads/secrets.ts';
import { type FunctionRow, findFunction } from '../rows/functions.ts';
import { changeCounts } from '../rows/reacting.ts';
import { findRevision } from '../rows/revisions.ts';
import { type CompiledContent, FunctionError } from '../rules/definition.ts';
import { microsecondsOf } from '../rules/microseconds.ts';
import type { DeliveryPolicy } from '../rules/policy.ts';
import { SWITCHED_OFF } from '../rules/replay.ts';
import { type ExpectsStatus, expectedStatuses } from '../rules/statuses.ts';
import type { OtherFacts } from '../rules/stored-event.ts';
import type { FunctionTypeName } from '../rules/types.ts';
import { type Variant, variantsOf } from '../rules/variants.ts';

/** A version of a function, ready to run. */
export interface Runnable {
  id: string;
  type: FunctionTypeName;
  bytecode: Bytecode;
  /** The text of the program. */
  hog: string;
  /** One for each mapping, or one. */
  variants: readonly Variant[];
  expects: readonly ExpectsStatus[];
  facts: OtherFacts;
  /** How the function is delivered now, whichever version this is. */
  delivery: DeliveryPolicy | null;
  paused: boolean;
  /** When the function was last switched on, in microseconds since 1970. What waited before ends as cancelled. */
  enabledAt: bigint;
}

/** Why an invocation does not run. */
export interface NotRunnable {
  /** `cancelled`: the function was switched off or deleted. `failed`: its version cannot be run. */
  status: 'cancelled' | 'failed';
  reason: string;
}

export interface ContentDependencies {
  pool: Pool;
  keyring: Keyring | undefined;
  compiler: FunctionCompiler;
  /** The address under which users see Sluice. */
  site: string;
}

export interface VersionKey {
  projectId: number;
  functionId: string;
  version: number;
}

export const keyText = ({ functionId, version }: VersionKey) => `${functionId}:${version}`;
const MOST_FUNCTIONS = 5_000;

interface Known {
  /** Counts the changes of the project's functions. */
  changes: number;
  found: Runnable | NotRunnable;
}

/**
 * The versions of functions that invocations run. After any change of the project's functions they are read again, so that
 * secrets are always those of now.
 */
export class Contents {
  readonly #deps: ContentDependencies;
  readonly #known = new LRUCache<string, Known>({ max: MOST_FUNCTIONS });

  constructor(deps: ContentDependencies) {
    this.#deps = deps;
  }

  /**
   * Returns the versions in the order of the keys, each when it is known: one that takes long, or that cannot be had at the
   * moment, concerns no other.
   */
  async of(keys: readonly VersionKey[]): Promise<Promise<Runnable | NotRunnable>[]> {
    const changes = await changeCounts(this.#deps.pool, [...new Set(keys.map((one) => one.projectId))]);
    const found = new Map<string, Promise<Runnable | NotRunnable>>();
    for (const key of keys) {
      const text = keyText(key);
      if (found.has(text)) continue;
      const one = this.#one(key, changes.get(key.projectId) ?? 0);
      one.catch(() => undefined);
      found.set(text, one);
    }
    return keys.map((key) => found.get(keyText(key)) as Promise<Runnable | NotRunnable>);
  }

  async #one(key: VersionKey, changes: number): Promise<Runnable | NotRunnable> {
    const text = keyText(key);
    const known = this.#known.get(text);
    if (known?.changes === changes) return known.found;
    const found = await this.#load(key);
    this.#known.set(text, { changes, found });
    return found;
  }

  async #load(key: VersionKey): Promise<Runnable | NotRunnable> {
    const { pool, keyring, site } = this.#deps;
    const [row, project] = await Promise.all([findFunction(pool, key), findProject(pool, key.projectId)]);
    if (!row || !project) return { status: 'cancelled', reason: 'The function was deleted.' };
    if (!row.enabled) return { status: 'cancelled', reason: SWITCHED_OFF };
    try {
      const content =
        row.version === key.version ? runningContent(keyring, row) : await this.#earlier(key, row);
      if (!content) return { status: 'failed', reason: `Version ${key.version} is no longer kept.` };
      const variants = variantsOf(content);
      return {
        ...{ id: row.id, type: row.type, variants, bytecode: content.bytecode as Bytecode },
        hog: content.hog,
        expects: variants.map(({ schemas, inputs }) => expectedStatuses(schemas, inputs)),
        facts: {
          project: { id: project.id, name: project.name },
          ...{ site, source: { id: row.id, name: row.name } },
        },
        ...{
          delivery: row.delivery,
          paused: row.paused,
          enabledAt: microsecondsOf(row.enabled_at ?? row.created_at),
        },
      };
    } catch (error) {
      if (!(error instanceof FunctionError || error instanceof SecretError)) throw error;
      return { status: 'failed', reason: error.message };
    }
  }

  /** Compiles an earlier version. Its secrets are those of now, as far as the function still has them. */
  async #earlier(key: VersionKey, row: FunctionRow): Promise<CompiledContent | undefined> {
    const { pool, keyring, compiler } = this.#deps;
    const revision = await findRevision(pool, key, key.version);
    if (!revision) return undefined;
    const live = openInputs(keyring, row);
    const saved = openSecrets(keyring, SECRETS_OF.revision(row.id, key.version), revision.secrets);
    return compiler.compile(key.projectId, {
      ...{ type: row.type, content: revision.content, secrets: renewed(saved, live) },
      // Its filters have matched already.
      ...{ isEnabled: false, testAccounts: [], actions: [], now: Date.now(), timezone: 'UTC' },
    });
  }
}

function renewed(saved: SecretInputs, live: SecretInputs): SecretInputs {
  const known = (inputs: SecretInputs['inputs'], now: SecretInputs['inputs']) =>
    Object.fromEntries(Object.entries(inputs).map(([key, one]) => [key, now[key] ?? one]));
  return {
    inputs: known(saved.inputs, live.inputs),
    mappings: saved.mappings.map(({ name, inputs }, index) => ({
      name,
      inputs: known(inputs, counterpart(live.mappings, name, index)?.inputs ?? {}),
    })),
  };
}
