// Puts the line and the column before the message of a program that failed. Stored code does not know them: the text is
// compiled once more when something fails, in a thread.
import { type Bytecode, type Places, placeIn } from '../hog/bytecode/index.ts';
import { type FunctionCompiler, FunctionCompilerBusyError } from './compiler.ts';

/** The places of code that failed lately. A program that fails for each event is compiled once. */
const known = new WeakMap<Bytecode, Promise<Places | null>>();

/** Adds a place to a message, if there is one. */
export const placed = (place: { line: number; column: number } | null, message: string): string =>
  place ? `line ${place.line}, column ${place.column}: ${message}` : message;

/** `at`: the element of the code at which it failed. Says nothing of the place if that cannot be found out now. */
export async function withPlace(
  compiler: Pick<FunctionCompiler, 'places'>,
  projectId: number,
  { hog, bytecode }: { hog: string; bytecode: Bytecode },
  { error, at }: { error: string; at: number | null },
): Promise<string> {
  if (at === null) return error;
  let places = known.get(bytecode);
  if (!places) {
    places = compiler.places(projectId, hog, bytecode);
    known.set(bytecode, places);
  }
  try {
    const table = await places;
    return placed(table && placeIn(table, at), error);
  } catch (reason) {
    // The message without a place is better than none.
    if (reason instanceof FunctionCompilerBusyError) known.delete(bytecode);
    return error;
  }
}
