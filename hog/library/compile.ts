import type { Program } from '../ast/index.ts';
import { type Bytecode, compileBody } from '../bytecode/index.ts';

export interface WrittenFunction {
  name: string;
  params: string[];
  code: Bytecode;
}

/** Each function of the library as code of its own: its parameters are on the stack when it starts. */
export function compileLibrary(program: Program, source: string): WrittenFunction[] {
  return program.declarations.map((one) => {
    if (one.kind !== 'function') throw new TypeError(`The library holds functions only, not ${one.kind}`);
    return { name: one.name, params: one.params, code: compileBody(one, source) };
  });
}
