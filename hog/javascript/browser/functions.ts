import { data } from './data.ts';
import { json } from './json.ts';
import { moments } from './moments.ts';
import { texts } from './texts.ts';
import type { Run, Value } from './values.ts';

export type BrowserFunction = (args: Value[], run: Run, name: string) => Value;

/** The functions of the language that a browser has; those that sign and hash are the server's. */
export const browserFunctions: Record<string, BrowserFunction> = { ...texts, ...json, ...data, ...moments };
