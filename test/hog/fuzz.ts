// `node test/hog/fuzz.ts [minutes] [seed]`: random and mutated input for parser, compilers, machine and
// JavaScript. Stops with an error at anything but a result or a typed error; says how memory went.
import { createParser } from '../../hog/parser/index.ts';
import { type FuzzCount, fuzzSource } from './support/fuzz.ts';
import { programText } from './support/program-text.ts';
import { Random } from './support/random.ts';
import { bothWays } from './support/whole.ts';

const minutes = Number(process.argv[2] ?? 10);
let seed = Number(process.argv[3] ?? 1);
const parser = createParser({ timeoutMs: 5_000, programTimeoutMs: 5_000, cacheEntries: 1_000 });
const count: FuzzCount = { sources: 0, parsed: 0, refused: 0, ran: 0, codes: 0, states: 0 };
const end = Date.now() + minutes * 60_000;
let report = Date.now();
const say = () => {
  const megabytes = Math.round(process.memoryUsage().rss / 1e6);
  process.stdout.write(`seed ${seed}: ${JSON.stringify(count)}, ${megabytes} MB\n`);
};

/** A program read in pieces has the tree, or the error, of the whole. */
async function fuzzPieces(from: number): Promise<void> {
  const source = programText(new Random(from));
  if (source.length > 400) return;
  const { whole, pieces } = await bothWays(source);
  if (whole !== pieces) throw new Error(`${JSON.stringify(source)}\n${whole}\n${pieces}`);
}

while (Date.now() < end) {
  await fuzzSource(parser, new Random(seed), count);
  if (seed % 40 === 0) await fuzzPieces(seed);
  seed++;
  if (Date.now() - report > 30_000) {
    report = Date.now();
    say();
  }
}
say();
await parser.close();
