/** @import { BrowserFunction } from './types.ts' */
import { data } from './data.js';
import { json } from './json.js';
import { moments } from './moments.js';
import { texts } from './texts.js';

/**
 * The functions of the language that a browser has; those that sign and hash are the server's.
 * @type {Record<string, BrowserFunction>}
 */
export const browserFunctions = { ...texts, ...json, ...data, ...moments };
