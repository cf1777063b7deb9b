import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import NativeEnvironment from './native-environment.ts';

type Arguments = ConstructorParameters<typeof NativeEnvironment>;

/** The kernel counts processor time in hundredths of a second. */
const TICKS = 100;

/** Seconds of processor time that this process and those that it started have taken. Linux only. */
function cpuSeconds(): number {
  const children = new Map<number, number[]>();
  const taken = new Map<number, number>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    let line: string;
    try {
      line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    } catch {
      // It has just ended.
      continue;
    }
    // The name of the program, in parentheses, may hold anything.
    const [, parent, ...rest] = line.slice(line.lastIndexOf(')') + 2).split(' ');
    children.set(Number(parent), [...(children.get(Number(parent)) ?? []), Number(pid)]);
    const ticks = rest.slice(9, 13).reduce((sum, one) => sum + Number(one), 0);
    taken.set(Number(pid), ticks / TICKS);
  }
  const sum = (pid: number): number =>
    (taken.get(pid) ?? 0) + (children.get(pid) ?? []).reduce((all, child) => all + sum(child), 0);
  return sum(process.pid);
}

/** The usual environment; it writes down what each test file took, as a line of JSON in the file `TEST_TIMES`. */
export default class MeasuredEnvironment extends NativeEnvironment {
  readonly file: string;
  readonly begun = { at: Date.now(), cpu: cpuSeconds() };
  loaded = this.begun;

  constructor(...given: Arguments) {
    super(...given);
    this.file = path.relative(given[0].projectConfig.rootDir, given[1].testPath);
  }

  handleTestEvent({ name }: { name: string }): void {
    // The modules of the file are there, and its first hook is next.
    if (name === 'run_start') this.loaded = { at: Date.now(), cpu: cpuSeconds() };
  }

  override async teardown(): Promise<void> {
    await super.teardown();
    const { file, begun, loaded } = this;
    const cpu = cpuSeconds();
    const line = {
      file,
      seconds: (Date.now() - begun.at) / 1000,
      cpu: rounded(cpu - begun.cpu),
      loading: { seconds: (loaded.at - begun.at) / 1000, cpu: rounded(loaded.cpu - begun.cpu) },
      heapMegabytes: Math.round(process.memoryUsage().heapUsed / 1e6),
    };
    appendFileSync(process.env.TEST_TIMES as string, `${JSON.stringify(line)}\n`);
  }
}

const rounded = (seconds: number) => Math.round(seconds * 100) / 100;
