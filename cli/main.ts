// `npx sluice`: what an operator does without a web page.
import { buildProgram, runProgram } from './program.ts';

await runProgram(buildProgram());
