import type { Parser } from '../../hog/parser/index.ts';
import type { CompiledFile, CompiledQuery, QueryJob, QueryRequest } from '../rules/request.ts';
import { compileActors } from './actors.ts';
import { asJson, type Selected } from './columns.ts';
import { compileEventSource, compileEvents } from './events.ts';
import { of } from './faults.ts';
import { asFile } from './file.ts';
import { compileHogQL } from './hogql.ts';

/** Compiles a query of any kind, for what the job says. Throws a QueryError. */
export async function compileQuery(parser: Parser, job: QueryJob): Promise<CompiledQuery | CompiledFile> {
  const { request } = job;
  if (request.kind === 'EventSource') return compileEventSource(parser, job, request);
  const selected = await compileSelect(parser, job, request);
  const { form } = job;
  if (form !== 'answer') return of('query', () => asFile(selected, form));
  const { statement, ...shown } = selected;
  return { ...asJson(statement), ...shown };
}

function compileSelect(parser: Parser, job: QueryJob, request: QueryRequest): Promise<Selected> {
  switch (request.kind) {
    case 'HogQLQuery':
      return compileHogQL(parser, job, request);
    case 'EventsQuery':
      return compileEvents(parser, job, request);
    case 'ActorsQuery':
      return compileActors(parser, job, request);
  }
}
