import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Moment } from '../../values/dates.ts';

/** One operator, one value, one property. */
export interface Case {
  operator: string;
  value?: unknown;
  /** Absent: the event has no such property. */
  property?: unknown;
  /** What every engine says, … */
  matches: boolean;
  /** … but for the conditions of feature flags, if this is here, */
  flag?: boolean;
  /** … and but for SQL, if this is here. docs/properties.md says why for each kind. */
  sql?: boolean;
}

export const MOMENT: Moment = { now: Date.parse('2026-03-15T12:00:00Z'), timezone: 'UTC' };

const FOLDER = path.join(import.meta.dirname, 'cases');

export const FILES: { name: string; cases: Case[] }[] = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .sort()
  .map((name) => ({
    name: name.replace('.json', ''),
    cases: JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8')) as Case[],
  }));

export const hasProperty = (one: Case): boolean => Object.hasOwn(one, 'property');

/** The filter document of a case. */
export const documentOf = (one: Case) => [{ key: 'k', operator: one.operator, value: one.value ?? null }];

/** Flags have cohorts only under these names, and know no aliases. */
export const isForFlags = (one: Case): boolean => !['in', 'not_in', 'min', 'max'].includes(one.operator);
