import { setTimeout as pause } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import type { Connection } from '@temporalio/client';
import { searchAttributes } from '../workflows/names.ts';
import { codeOf, isPassing, isWithheld } from './answers.ts';
import type { TemporalSettings } from './connection.ts';

const TYPES = { TEXT: 1, KEYWORD: 2, INT: 3, DOUBLE: 4, BOOL: 5, DATETIME: 6, KEYWORD_LIST: 7 } as const;

/** The types, as the programs of Temporal name them. */
const TYPE_NAMES: Record<keyof typeof TYPES, string> = {
  TEXT: 'Text',
  KEYWORD: 'Keyword',
  INT: 'Int',
  DOUBLE: 'Double',
  BOOL: 'Bool',
  DATETIME: 'Datetime',
  KEYWORD_LIST: 'KeywordList',
};
/** A value of each type, as a search writes it. */
const SAMPLES: Record<keyof typeof TYPES, string> = {
  TEXT: "'x'",
  KEYWORD: "'x'",
  INT: '0',
  DOUBLE: '0.5',
  BOOL: 'true',
  DATETIME: "'2000-01-01T00:00:00Z'",
  KEYWORD_LIST: "'x'",
};

/** The addresses of Temporal Cloud. */
const CLOUD = /\.(tmprl\.cloud|temporal\.io):\d+$/;

/** How long a Temporal is asked again that cannot read the namespace. */
const PATIENCE = 10_000;
const PAUSE = 500;

/**
 * Whether Temporal cannot read its namespaces. A development server whose database was interrupted may say so for long, while
 * workflows go on.
 */
export const cannotReadNamespace = (error: unknown): boolean =>
  codeOf(error) === status.UNAVAILABLE && /unable to get namespace/i.test((error as Error).message);

type SearchAttribute = (typeof searchAttributes)[keyof typeof searchAttributes];

/** What a namespace has of the search attributes. */
export interface Registration {
  /** What was registered just now. */
  added: string[];
  /** What the namespace lacks and Temporal does not let Sluice register. */
  missing: SearchAttribute[];
  /** Why, as Temporal says it. */
  reason: string | undefined;
}

/** Registers the search attributes that the namespace lacks. Repeating it changes nothing. */
export async function registerSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<Registration> {
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

async function register(connection: Connection, namespace: string): Promise<Registration> {
  const found: Registration = { added: [], missing: [], reason: undefined };
  for (const key of await missingSearchAttributes(connection, namespace)) {
    try {
      await connection.operatorService.addSearchAttributes({
        namespace,
        searchAttributes: { [key.name]: TYPES[key.type] },
      });
      found.added.push(key.name);
    } catch (error) {
      if (isPassing(error)) throw error;
      const { message } = error as Error;
      // Another process registered it in between.
      if (/already exists/i.test(message)) found.added.push(key.name);
      else {
        found.missing.push(key);
        found.reason ??= message;
      }
    }
  }
  return found;
}

/**
 * Finds the search attributes that the namespace lacks. The service for operators lists them. Where Temporal denies it, as
 * Temporal Cloud does, a search by an attribute shows whether there is one.
 */
export async function missingSearchAttributes(
  connection: Connection,
  namespace: string,
): Promise<SearchAttribute[]> {
  const all = Object.values(searchAttributes);
  try {
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    return all.filter((key) => !(key.name in (customAttributes ?? {})));
  } catch (error) {
    if (!isWithheld(error)) throw error;
  }
  const canSearch = async (keys: SearchAttribute[]): Promise<boolean> => {
    try {
      const query = keys.map(({ name, type }) => `${name} = ${SAMPLES[type]}`).join(' and ');
      await connection.workflowService.countWorkflowExecutions({ namespace, query });
      return true;
    } catch (error) {
      if (codeOf(error) === status.INVALID_ARGUMENT) return false;
      throw error;
    }
  };
  if (await canSearch(all)) return [];
  const missing: SearchAttribute[] = [];
  for (const key of all) if (!(await canSearch([key]))) missing.push(key);
  return missing;
}

type Place = Pick<TemporalSettings, 'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE'>;

/** Says what is missing. */
export const whatIsMissing = (missing: readonly SearchAttribute[], { TEMPORAL_NAMESPACE }: Place): string =>
  `The namespace ${TEMPORAL_NAMESPACE} lacks the search attributes ${missing.map(({ name }) => name).join(', ')}. Exports wait for them.`;

/** Returns the command for somebody who may register search attributes. */
export function commandToRegister(
  missing: readonly SearchAttribute[],
  { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace }: Place,
): string {
  if (address !== undefined && CLOUD.test(address)) {
    const attributes = missing.map(({ name, type }) => `--search-attribute "${name}=${TYPE_NAMES[type]}"`);
    return `tcld namespace search-attributes add --namespace ${namespace} ${attributes.join(' ')}`;
  }
  const attributes = missing.map(({ name, type }) => `--name ${name} --type ${TYPE_NAMES[type]}`);
  const where = address === undefined ? '' : `--address ${address} `;
  return `temporal operator search-attribute create ${where}--namespace ${namespace} ${attributes.join(' ')}`;
}
