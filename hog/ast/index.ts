export * as build from './build.ts';
export * from './expressions.ts';
export { isNode, nodesOf } from './nodes.ts';
export { qualified } from './qualified.ts';
export * from './query-expressions.ts';
export * from './selects.ts';
export * from './statements.ts';
