import type { Program } from '../ast/index.ts';
import { type Bytecode, compileBody } from '../bytecode/index.ts';

export interface WrittenFunction {
  name: string;
  params: string[];
  code: Bytecode;
}

/** Compiles each function of the library on its own. When its code starts, the parameters are on the stack. */
export function compileLibrary(program: Program, source: string): WrittenFunction[] {
  return program.declarations.map((one) => {
    if (one.kind !== 'function')
      throw new TypeError(`The library may only contain functions, not ${one.kind}`);
    return { name: one.name, params: one.params, code: compileBody(one, source) };
  });
}
