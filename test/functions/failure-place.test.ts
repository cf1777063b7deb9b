import { expect, test } from '@jest/globals';
import { findPlaces } from '../../functions/compile.ts';
import { FunctionCompilerBusyError } from '../../functions/compiler.ts';
import { withPlace } from '../../functions/failure-place.ts';
import { compileBytecode, compileWithPlaces } from '../../hog/bytecode/index.ts';
import { testParser } from '../hog/parser/support.ts';

const parser = testParser();
const hog = 'let a := 1\nreturn a + b';
const compiled = async () => compileBytecode(await parser.program(hog), hog);

test('places belong to the code that ran, or to none', async () => {
  const bytecode = await compiled();
  expect(await findPlaces(parser, hog, bytecode)).toEqual(
    compileWithPlaces(await parser.program(hog), hog).places,
  );
  expect(await findPlaces(parser, hog, [...bytecode.slice(0, -1), 7])).toBeNull();
  expect(await findPlaces(parser, 'return 1', bytecode)).toBeNull();
  expect(await findPlaces(parser, 'no program (', bytecode)).toBeNull();
});

test('a program that fails again and again is compiled once', async () => {
  const bytecode = await compiled();
  let asked = 0;
  const compiler = {
    places: () => {
      asked++;
      return findPlaces(parser, hog, bytecode);
    },
  };
  const failed = { error: 'no', at: bytecode.length - 3 };
  const busy = { places: () => Promise.reject(new FunctionCompilerBusyError('busy')) };
  expect(await withPlace(busy, 1, { hog, bytecode }, failed)).toBe('no');
  for (let i = 0; i < 3; i++) {
    expect(await withPlace(compiler, 1, { hog, bytecode }, failed)).toBe('line 2, column 8: no');
  }
  expect(asked).toBe(1);
  expect(await withPlace(compiler, 1, { hog, bytecode }, { error: 'no', at: null })).toBe('no');
});
