import { setTimeout as pause } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { Connection } from '@temporalio/client';
import { searchAttributes } from '../workflows/names.ts';

const TYPES = { TEXT: 1, KEYWORD: 2, INT: 3, DOUBLE: 4, BOOL: 5, DATETIME: 6, KEYWORD_LIST: 7 } as const;

/** How long a Temporal is asked again that cannot read the namespace. */
const PATIENCE = 10_000;
const PAUSE = 500;

/**
 * Whether Temporal cannot read its namespaces. A development server whose database was interrupted may say so for long, while
 * workflows go on.
 */
export const cannotReadNamespace = (error: unknown): boolean =>
  (error as { code?: unknown }).code === status.UNAVAILABLE &&
  /unable to get namespace/i.test((error as Error).message);

/** Registers the search attributes that the namespace lacks. Repeating it changes nothing. */
export async function registerSearchAttributes(connection: Connection, namespace: string): Promise<string[]> {
  const end = performance.now() + PATIENCE;
  for (;;) {
    try {
      return await register(connection, namespace);
    } catch (error) {
      if (!cannotReadNamespace(error) || performance.now() > end) throw error;
      await pause(PAUSE);
    }
  }
}

async function register(connection: Connection, namespace: string): Promise<string[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.values(searchAttributes).filter((key) => !(key.name in (customAttributes ?? {})));
  for (const key of missing) {
    try {
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: { [key.name]: TYPES[key.type] },
      });
    } catch (error) {
      // Another process registered it in between.
      if (!/already exists/i.test((error as Error).message)) throw error;
    }
  }
  return missing.map((key) => key.name);
}
