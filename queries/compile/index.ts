import type { Parser } from '../../hog/parser/index.ts';
import type { CompiledQuery, QueryJob } from '../rules/request.ts';
import { compileActors } from './actors.ts';
import { compileEventSource, compileEvents } from './events.ts';
import { compileHogQL } from './hogql.ts';

/** Compiles a query of any kind. Throws a QueryError. */
export function compileQuery(parser: Parser, job: QueryJob): Promise<CompiledQuery> {
  const { request } = job;
  switch (request.kind) {
    case 'HogQLQuery':
      return compileHogQL(parser, job, request);
    case 'EventsQuery':
      return compileEvents(parser, job, request);
    case 'EventSource':
      return compileEventSource(parser, job, request);
    case 'ActorsQuery':
      return compileActors(parser, job, request);
  }
}
