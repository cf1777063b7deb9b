import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { databaseForFile } from '../../support/database.ts';

interface Arrival {
  source?: string;
  medium?: string;
  campaign?: string;
  domain?: string;
  host?: string;
  clicks?: string[];
}

const root = path.resolve(import.meta.dirname, '../../..');
const cases: [string, Arrival, string][] = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'channels.json'), 'utf8'),
);
const database = databaseForFile();

test.each(cases)('%s: %j is %s', async (_name, arrival, expected) => {
  const { rows } = await database.pool.query('select channel_type($1, $2, $3, $4, $5, $6) as channel', [
    arrival.source ?? null,
    arrival.medium ?? null,
    arrival.campaign ?? null,
    arrival.domain ?? null,
    arrival.host ?? null,
    arrival.clicks ?? null,
  ]);
  expect(rows[0].channel).toBe(expected);
});

test('every channel that there is has a case, and stands in the documentation', () => {
  const sql = readFileSync(path.join(root, 'db/migrations/0006-sessions.sql'), 'utf8');
  const [, body = ''] = /create function channel_type\(([\s\S]*?)\$\$;/.exec(sql) ?? [];
  const channels = new Set(
    [...body.matchAll(/(?:then|else) '([A-Z][^']*)'/g)].map((match) => match[1] as string),
  );
  expect(channels.size).toBeGreaterThan(15);
  expect([...channels].filter((channel) => !cases.some(([, , expected]) => expected === channel))).toEqual(
    [],
  );
  const documentation = readFileSync(path.join(root, 'docs/sessions.md'), 'utf8');
  expect([...channels].filter((channel) => !documentation.includes(`| ${channel} |`))).toEqual([]);
});
