import { written } from '../library/bytecode.ts';
import type { WrittenFunction } from '../library/compile.ts';

export const libraryChunk = (name: string): string => `stl/${name}`;

/** The library functions that are written in Hog, by chunk name. */
export const hogLibrary: ReadonlyMap<string, WrittenFunction> = new Map(
  written.map((one) => [libraryChunk(one.name), one]),
);
