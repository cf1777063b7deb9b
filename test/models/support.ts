import { afterAll } from '@jest/globals';
import type { Pool } from '../../db/pool.ts';
import { createParser, type Parser } from '../../hog/parser/index.ts';
import { type ModelOptions, type ModelQuery, modelQuery, previewRows } from '../../models/index.ts';
import { PATIENCE } from '../support/eventually.ts';
import type { PlanNode } from '../support/plans.ts';

export const START = Date.parse('2026-03-02T10:00:00Z');
export const END = START + 3_600_000;

export function parserForFile(): Parser {
  const parser = createParser({ timeoutMs: PATIENCE });
  afterAll(() => parser.close());
  return parser;
}

/** The query of an hour of project 1's events for files, unless something else is asked for. */
export const queryOf = (parser: Parser, options: Partial<ModelOptions> = {}): Promise<ModelQuery> =>
  modelQuery(parser, {
    model: 'events',
    projectId: 1,
    interval: { start: START, end: END },
    columnSet: 'files',
    timezone: 'UTC',
    ...options,
  });

/** The rows, by the names of the query's columns. */
export async function rowsOf(pool: Pool, query: ModelQuery): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query({ text: query.select, rowMode: 'array' });
  return rows.map((row: unknown[]) =>
    Object.fromEntries(query.columns.map((column, index) => [column.name, row[index]])),
  );
}

/** The rows as the reader gets them: in a transaction with the settings of the query. */
export async function rowsOfReader(reader: Pool, query: ModelQuery): Promise<Record<string, unknown>[]> {
  return (await previewRows(reader, query, 1_000_000, { timeoutMs: PATIENCE })).rows.map((row) =>
    Object.fromEntries(query.columns.map((column, index) => [column.name, row[index]])),
  );
}

/** The plan of the query as it is run, with its settings, after it was executed. */
export async function planOfQuery(pool: Pool, query: ModelQuery): Promise<PlanNode[]> {
  const client = await pool.connect();
  try {
    await client.query('begin read only');
    for (const [name, value] of Object.entries(query.settings))
      await client.query(`set local ${name} = '${value}'`);
    const { rows } = await client.query(`explain (format json, analyze) ${query.select}`);
    await client.query('rollback');
    const nodes: PlanNode[] = [];
    const visit = (node: PlanNode) => {
      nodes.push(node);
      node.Plans?.forEach(visit);
    };
    visit(rows[0]['QUERY PLAN'][0].Plan);
    return nodes;
  } finally {
    client.release();
  }
}
