// `npx sluice` with one product more.
import { buildProgram, COMMANDS, runProgram } from '../../../cli/program.ts';
import { PRODUCTS } from '../../../products.ts';
import { scratchCommands } from './commands.ts';
import { SCRATCH } from './manifest.ts';

const commands = { names: ['note'], load: async () => scratchCommands };

await runProgram(
  await buildProgram(process.argv[2], [...COMMANDS, commands], async () => [...PRODUCTS, SCRATCH]),
);
