// Writes syntax trees as HogQL text, so that people can read what a query became.
export { expressionText } from './expressions.ts';
export { literal, name } from './names.ts';
export { selectText } from './selects.ts';
