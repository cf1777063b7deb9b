// The entry point of a thread that compiles the settings of exports.
import { createOwnParser } from '../hog/parser/index.ts';
import { serveThread } from '../hog/threads/serve.ts';
import { type ModelOptions, modelQuery } from './models.ts';

const { parser, isWorn } = await createOwnParser();

serveThread({ work: (options: ModelOptions) => modelQuery(parser, options), isWorn });
