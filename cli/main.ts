// `npx sluice`: the command line for operators.
import { buildProgram, runProgram } from './program.ts';

await runProgram(await buildProgram(process.argv[2]));
