import { containsPattern } from '../../db/like.ts';
import { build, type Expr } from '../../hog/ast/index.ts';
import type { Parser } from '../../hog/parser/index.ts';
import { selection } from '../../hog/sql/index.ts';
import { NAMING_PROPERTIES } from '../../properties/person-name.ts';
import { type ActorsQuery, QueryError, type QueryJob } from '../rules/request.ts';
import type { Selected } from './columns.ts';
import { givenConditions } from './conditions.ts';
import { mostOf, personName } from './events.ts';
import { compileListing, type SpecialColumn } from './listed.ts';

const { field, call, compare, constant } = build;
const DEFAULT_COLUMNS = ['person', 'id', 'created_at', 'person.$delete'];

const SPECIAL: Readonly<Record<string, SpecialColumn>> = {
  person: {
    of: 'actor',
    type: 'Tuple',
    parts: {
      id: field('id'),
      created_at: field('created_at'),
      properties: field('properties'),
      is_identified: field('is_identified'),
    },
  },
  person_display_name: {
    of: 'display name',
    type: 'Tuple',
    order: 'display_name',
    parts: { display_name: personName(['properties'], call('toString', field('id'))), id: field('id') },
  },
};

/** What people write for columns that are named otherwise here. */
const ALSO_KNOWN: Readonly<Record<string, string>> = {
  actor: 'person',
  'person.$delete': 'id',
  person_id: 'id',
};

/** Compiles a list of persons. */
export async function compileActors(parser: Parser, job: QueryJob, request: ActorsQuery): Promise<Selected> {
  if (job.form !== 'answer') {
    throw new QueryError(
      'query__kind',
      'A list of persons is answered as JSON only. Select from persons in a HogQLQuery.',
    );
  }
  const scope = 'persons';
  const select = request.select?.length ? request.select : DEFAULT_COLUMNS;
  const compiled = await compileListing(parser, job, {
    table: 'persons',
    select: select.map((one) => ALSO_KNOWN[one.trim()] ?? one),
    special: SPECIAL,
    where: [...(await givenConditions(request, { parser, job, scope })), ...searched(request.search)],
    tests: [],
    orderBy: request.orderBy,
    defaultOrder: (columns) => [{ expr: mostOf(columns) ?? field('created_at'), order: 'DESC' }],
    unique: 'id',
    isPaged: false,
    limit: request.limit,
    offset: request.offset,
  });
  return {
    ...compiled,
    columns: compiled.columns.map((one, index) => ({ ...one, name: select[index] as string })),
  };
}

/** The condition for a text that is in the email, the name or the id of a person, or is one of its distinct ids. */
function searched(search: string | null | undefined): Expr[] {
  const text = search?.trim();
  if (!text) return [];
  const pattern = constant(containsPattern(text));
  const like = (expr: Expr): Expr => compare('ilike', call('toString', expr), pattern);
  const withId = selection({
    table: 'person_distinct_ids',
    select: [field('person_id')],
    where: compare('ilike', field('distinct_id'), pattern),
  });
  return [
    build.or([
      ...NAMING_PROPERTIES.map((one) => like(field('properties', one))),
      like(field('id')),
      compare('in', field('id'), withId),
    ]),
  ];
}
