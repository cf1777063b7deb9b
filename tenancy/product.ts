import type { DropHooks } from '../db/event-partitions.ts';
import type { PersonMerge } from '../db/person-writes.ts';
import type { Pool, Queryable, Transaction } from '../db/pool.ts';
import { CORE_TABLES, type ProjectTable } from '../db/project-tables.ts';
import type { SealedColumn } from '../db/sealed-columns.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Registry } from '../telemetry/metrics.ts';
import { CORE_SEALED } from './project-secrets.ts';

/** The result of one check of `doctor`. */
export interface Finding {
  /** The name of the check, in a word or two. */
  check: string;
  ok: boolean;
  /** The result, and if the check failed, what to do. */
  sentence: string;
}

/**
 * How a piece of work learns that it must stop, and reports progress. An activity, a test or a command implements it.
 */
export interface Work {
  /** Is aborted when the work has to stop. Its reason is the error to end with. */
  readonly signal: AbortSignal;
  /** Reports that the work continues, and how far it is. */
  beat(details?: unknown): void;
}

/** Work that no request does. It is done every minute, can be repeated, and can stop at any point. */
export interface MaintenanceStep<Deps> {
  /** The name of its activity in Temporal. It is unique among all steps and never changes. */
  name: string;
  /** What `run` counts. It is shown after the count: `sessions expired`. */
  summary: string;
  /** The name of a step that ends before this one begins, whether it succeeds or fails. It is listed earlier. */
  after?: string;
  /** How long an attempt at it may take, if that is more than two minutes. */
  longestMilliseconds?: number;
  /** Does the work. It beats at least every half minute, because a step that is silent for longer is repeated. */
  run: (deps: Deps, work: Work) => Promise<number>;
}

/**
 * Describes a product to the rest of Sluice. `products.ts` lists the products, and each process passes the list to what
 * needs it. `Deps` is what the product's steps of maintenance need.
 */
export interface Product<Deps = never> {
  /** The name of its folder. */
  name: string;
  /** The page of the documentation about it. */
  docs: string;
  /** Its tables that have a `project_id`, in the order in which their rows are deleted. */
  tables: readonly ProjectTable[];
  /** Its columns that hold sealed secrets. */
  sealed: readonly SealedColumn[];
  /** The objects of its scopes. `batch_export` adds the scopes `batch_export:read` and `batch_export:write`. */
  scopes: readonly string[];
  maintenance: readonly MaintenanceStep<Deps>[];
  /** The kinds of its advisory locks, by name; see db/locks.ts. */
  lockKinds?: Readonly<Record<string, number>>;
  /** Adds metrics to every worker. They are read from the database when they are scraped. */
  registerMetrics?(registry: Registry, pool: Pool): void;
  /** Checks the product for `doctor`, which calls this only if the database is reachable and up to date. */
  diagnose?(queryable: Queryable): Promise<Finding[]>;
  /**
   * Runs in the transaction that stores events, after persons were merged into others. The transaction holds the locks
   * on all of these persons. If this throws, nothing is stored and the events are retried.
   */
  personsMerged?(client: Transaction, merges: readonly PersonMerge[]): Promise<void>;
  /**
   * Runs in the transaction that deletes persons of a project, after the deletion. The ids are theirs, and those of persons who
   * have become part of them. If this throws, the persons stay.
   */
  personsDeleted?(client: Transaction, projectId: number, personIds: readonly string[]): Promise<void>;
  /**
   * Answers whether the product has still to see events of a partition. Then retention waits for it, but not for ever.
   */
  eventsWanted?(queryable: Queryable, partition: string): Promise<boolean>;
  /**
   * Runs in the transaction that drops a partition of events, before it is dropped. Writes down what the product loses by it.
   * Returns how many events these are.
   */
  eventsDropped?(client: Transaction, partition: string): Promise<number>;
  /**
   * Runs in the transaction that restores a backup, after its rows. The tables may be those of an earlier version. Takes back
   * what nobody wants to happen a second time. Returns what to tell about it. Undefined: nothing.
   */
  restored?(queryable: Queryable): Promise<string | undefined>;
}

/** Lists every table whose rows belong to a project. Products come first, because their rows refer to the others. */
export function projectTables(products: readonly Pick<Product, 'tables'>[]): ProjectTable[] {
  return [...products.flatMap((one) => one.tables), ...CORE_TABLES];
}

/** Lists every column that holds sealed secrets: those of the products, and those that belong to none. */
export function sealedColumns(products: readonly Pick<Product, 'sealed'>[]): SealedColumn[] {
  return [...CORE_SEALED, ...products.flatMap((one) => one.sealed)];
}

/** Combines the hooks of all products into one. Undefined if no product has one. */
export function mergeHook(
  products: readonly Pick<Product, 'personsMerged'>[],
): NonNullable<Product['personsMerged']> | undefined {
  const interested = products.filter((one) => one.personsMerged);
  if (interested.length === 0) return undefined;
  return async (client, merges) => {
    for (const product of interested) await product.personsMerged?.(client, merges);
  };
}

/** Asks and tells all products when events are dropped. */
export function dropHooks(
  pool: Pool,
  products: readonly Pick<Product, 'name' | 'eventsWanted' | 'eventsDropped'>[],
  logger: Pick<Logger, 'warn' | 'info'>,
): DropHooks {
  return {
    async isWanted(partition) {
      for (const { name, eventsWanted } of products) {
        if (!eventsWanted || !(await eventsWanted(pool, partition))) continue;
        logger.info({ partition }, `retention waits for ${name}, which want events that are to be deleted`);
        return true;
      }
      return false;
    },
    async isDropped(client, partition) {
      for (const { name, eventsDropped } of products) {
        const events = (await eventsDropped?.(client, partition)) ?? 0;
        if (events > 0)
          logger.warn({ partition, events }, `retention deletes events that ${name} have not seen`);
      }
    },
  };
}
