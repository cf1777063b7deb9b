import { setImmediate } from 'node:timers/promises';
import type { Block, Program, Statement } from '../ast/index.ts';
import { finish } from './convert-expression.ts';
import { toProgram } from './convert-statement.ts';
import { answerOf } from './messages.ts';
import { createReaders, deeper, type Origin, type RawNode, type Reader } from './reader.ts';
import { type Hole, type Piece, splitProgram } from './split.ts';

export interface ProgramReading {
  parse(texts: string[]): Promise<string[]>;
  /** How many requests to the parser may run at once. */
  lanes: number;
  maxDepth: number;
}

/** A piece of the program or a piece nested in it. `index` is the index of the top-level piece. */
interface Part {
  piece: Piece;
  index: number;
}

/** How many tokens are sent to the parser at once. They take it about 10 milliseconds. */
const CHUNK = 300;
/** After this many tokens, the conversion yields to the event loop. */
const TURN = 400;

/** The parsed pieces do not fit together, so the program was not split correctly. */
class Mismatch extends Error {}

/** Parses a program piece by piece. The tree is the same as if the whole text were parsed at once. */
export async function readProgram(source: string, reading: ProgramReading): Promise<Program> {
  const readerAt = createReaders(source, reading.maxDepth);
  const pieces = splitProgram(source, reading.maxDepth) ?? [];
  const assembly = new Assembly(readerAt);
  const failed = await parsePieces(pieces, reading, assembly.answers);
  const programs: Program[] = [];
  let turn = 0;
  for (const piece of pieces.slice(0, failed)) {
    turn += piece.weight;
    if (turn > TURN) turn = await setImmediate(0);
    const program = assembly.program(piece);
    if (!program) break;
    programs.push(program);
  }
  const rest = pieces[programs.length];
  // Everything before this piece consists of complete statements, so the rest can be parsed alone. Its errors come from
  // there too.
  if (rest || pieces.length === 0)
    programs.push(await readWhole(source, rest?.start ?? 0, reading, readerAt));
  return joined(programs);
}

async function readWhole(
  source: string,
  start: number,
  reading: ProgramReading,
  readerAt: (origin: Partial<Origin>) => Reader,
): Promise<Program> {
  const text = source.slice(start);
  const [json] = await reading.parse([text]);
  const reader = readerAt({ start });
  return toProgram(reader, answerOf(reader, text, json as string));
}

function joined(programs: Program[]): Program {
  const [first, last] = [programs[0] as Program, programs.at(-1) as Program];
  if (programs.length === 1) return first;
  const program: Program = {
    kind: 'program',
    declarations: Object.freeze(programs.flatMap((one) => one.declarations)) as Statement[],
  };
  if (first.span && last.span) {
    program.span = Object.freeze({ start: first.span.start, end: last.span.end });
  }
  return Object.freeze(program);
}

/** Returns whether an answer of the parser is a program, and not an error. */
export const isParsed = (json: string): boolean => json.startsWith('{"declarations"');

/** Parses all pieces. Returns the index of the first piece that fails, or the number of pieces if none does. */
async function parsePieces(
  pieces: Piece[],
  { parse, lanes }: ProgramReading,
  answers: Map<Piece, string>,
): Promise<number> {
  const chunks = chunksOf(pieces.flatMap((piece, index) => [...partsOf(piece, index)]));
  let failed = pieces.length;
  const lane = async () => {
    for (let chunk = chunks.shift(); chunk; chunk = chunks.shift()) {
      if ((chunk[0] as Part).index > failed) return;
      const jsons = await parse(chunk.map(({ piece }) => piece.text));
      for (const [at, { piece, index }] of chunk.entries()) {
        const json = jsons[at] as string;
        answers.set(piece, json);
        if (!isParsed(json)) failed = Math.min(failed, index);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: lanes }, lane));
  } finally {
    chunks.length = 0;
  }
  return failed;
}

function* partsOf(piece: Piece, index: number): Generator<Part> {
  yield { piece, index };
  for (const hole of piece.holes.values()) {
    for (const inner of hole.pieces) yield* partsOf(inner, index);
  }
}

function chunksOf(parts: Part[]): Part[][] {
  const chunks: Part[][] = [];
  let weight = CHUNK;
  for (const part of parts) {
    if (weight >= CHUNK) {
      chunks.push([]);
      weight = 0;
    }
    chunks.at(-1)?.push(part);
    weight += part.piece.weight;
  }
  return chunks;
}

/** Assembles the trees of nested pieces. */
class Assembly {
  readonly answers = new Map<Piece, string>();
  readonly #readerAt: (origin: Partial<Origin>) => Reader;

  constructor(readerAt: (origin: Partial<Origin>) => Reader) {
    this.#readerAt = readerAt;
  }

  program(piece: Piece): Program | null {
    try {
      return this.#convert(piece, 0);
    } catch (error) {
      if (error instanceof Mismatch) return null;
      throw error;
    }
  }

  #convert(piece: Piece, depth: number): Program {
    const reader = this.#readerAt({ start: piece.start });
    reader.depth = depth;
    let filled = 0;
    reader.filled = (raw) => {
      const hole = raw.start && piece.holes.get(reader.offset(raw.start.offset));
      if (!hole || !isMarker(hole, raw)) return null;
      filled++;
      return this.#fill(hole, reader, raw);
    };
    const program = toProgram(reader, answerOf(reader, piece.text, this.answers.get(piece) as string));
    if (filled !== piece.holes.size) throw new Mismatch();
    return program;
  }

  #fill(hole: Hole, reader: Reader, raw: RawNode): Statement {
    const declarations = (depth: number) =>
      hole.pieces.flatMap((piece) => this.#convert(piece, depth).declarations);
    if (hole.kind === 'statement') {
      const [statement, ...more] = declarations(reader.depth);
      if (statement?.kind !== 'ifStatement' || more.length > 0) throw new Mismatch();
      return statement;
    }
    return deeper(reader, raw, () =>
      finish<Block>(reader, raw, { kind: 'block', declarations: declarations(reader.depth) }),
    );
  }
}

/** Returns whether the parser read a marker as the statement that it is. */
function isMarker(hole: Hole, raw: RawNode): boolean {
  if (hole.marker === 'block') {
    return raw.node === 'Block' && Array.isArray(raw.declarations) && raw.declarations.length === 0;
  }
  const expr = raw.expr as RawNode | null | undefined;
  return raw.node === 'ExprStatement' && expr?.node === 'Constant' && typeof expr.value === 'string';
}
