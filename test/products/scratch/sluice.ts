// `npx sluice` with one product more.
import { buildProgram, COMMANDS, runProgram } from '../../../cli/program.ts';
import { PRODUCTS } from '../../../products.ts';
import { scratchCommands } from './commands.ts';
import { SCRATCH } from './manifest.ts';

await runProgram(buildProgram([...COMMANDS, scratchCommands], [...PRODUCTS, SCRATCH]));
