// The entry point of a parser thread. It has no time limit of its own; the pool terminates it when it takes too long.
import { parentPort } from 'node:worker_threads';
import createHogQLParser, { type HogQLParser } from '@posthog/hogql-parser';
import { type ParseRequest, type ParseResponse, TEMPLATE_PREFIX } from './protocol.ts';
import type { SourceKind } from './scan.ts';

const parser = await createHogQLParser();

function parse(parser: HogQLParser, kind: SourceKind, source: string): string {
  switch (kind) {
    case 'program':
      return parser.parseProgram(source);
    case 'expression':
      return parser.parseExpr(source);
    case 'select':
      return parser.parseSelect(source);
    case 'template':
      return parser.parseFullTemplateString(TEMPLATE_PREFIX + source);
  }
}

parentPort?.on('message', (request: ParseRequest) => {
  let response: ParseResponse;
  try {
    const jsons = request.sources.map((source) => parse(parser, request.kind, source));
    response = { id: request.id, jsons };
  } catch (error) {
    response = { id: request.id, trap: String(error) };
  }
  parentPort?.postMessage(response);
});
