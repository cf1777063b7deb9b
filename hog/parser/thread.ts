// The entry point of a parser thread.
import { serveThread } from '../threads/serve.ts';
import { type ParseJob, WasmEngine } from './engine.ts';

const engine = await WasmEngine.load();

serveThread({ work: (job: ParseJob) => engine.parse(job), isWorn: () => engine.isWorn });
