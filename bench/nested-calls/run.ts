// `npm run bench -- nested-calls` measures the processor time of the first text with nested calls in a new thread: whole, as the parser
// takes it, and cut into pieces.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { withCalls } from '../../hog/parser/calls.ts';
import { type Engine, WasmEngine } from '../../hog/parser/engine.ts';

interface Trial {
  depth: number;
  isCut: boolean;
}

/** How many calls are in each other. 0 stands for ten different ones. */
const DEPTHS = [0, 3, 5, 7, 8, 10, 20, 50];
/** The time of whole texts grows without end. */
const MOST_WHOLE = 10;
const ROUNDS = 3;
const BUDGET = { limitMs: 600_000, usedMs: 0 };

/** Ten different calls in each other, as people write them. */
const DIFFERENT =
  "upper(lower(trim(concat(replaceAll(event, 'a', 'b'), substring(event, 1, length(left(event, toInt(min2(1, abs(-2))))))))))";
const text = (depth: number) =>
  depth === 0
    ? `select ${DIFFERENT} from events limit 10`
    : `select ${'lower('.repeat(depth)}event${')'.repeat(depth)} from events limit 10`;

async function measure({ depth, isCut }: Trial): Promise<number> {
  const own = await WasmEngine.load();
  const plain: Engine = {
    ...{ lanes: 1, close: async () => undefined },
    parse: async (kind, sources) => own.parse({ kind, sources }),
  };
  const engine = isCut ? withCalls(plain) : plain;
  // What is compiled for any text at all is not counted.
  await engine.parse('select', ['select lower(event) from events limit 1'], BUDGET);
  const before = process.threadCpuUsage();
  await engine.parse('select', [text(depth)], BUDGET);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

const inThread = (trial: Trial) =>
  new Promise<number>((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: trial });
    worker.once('message', resolve);
    worker.once('error', reject);
  });

if (isMainThread) {
  const best = async (trial: Trial) => {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) times.push(await inThread(trial));
    return Number(Math.min(...times).toFixed(1));
  };
  for (const depth of DEPTHS) {
    const whole = depth <= MOST_WHOLE ? await best({ depth, isCut: false }) : null;
    console.log({ depth, wholeMs: whole, cutMs: await best({ depth, isCut: true }) });
  }
} else parentPort?.postMessage(await measure(workerData as Trial));
