// `npx sluice`: the command line for operators.
import { buildProgram, runProgram } from './program.ts';

await runProgram(buildProgram());
