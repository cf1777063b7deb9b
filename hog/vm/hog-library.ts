import { written } from '../library/bytecode.ts';
import type { WrittenFunction } from '../library/compile.ts';

export const libraryChunk = (name: string): string => `stl/${name}`;

/** Functions written in Hog, by the name of their chunk. */
export const hogLibrary: ReadonlyMap<string, WrittenFunction> = new Map(
  written.map((one) => [libraryChunk(one.name), one]),
);
