import { nextTurn } from '../../db/loop-turns.ts';
import type { StoredInputs } from '../rules/definition.ts';
import { type ItemStep, type StepItem, stepWithin } from '../run.ts';
import { isNoStep, type Runner, RunnerBusyError } from '../runner.ts';
import { MainThreadBudget } from '../transform/budget.ts';
import type { Runnable } from './contents.ts';
import { isLight } from './light.ts';

interface Asked {
  item: StepItem;
  resolve(step: ItemStep): void;
  reject(error: Error): void;
}

interface Group {
  projectId: number;
  runnable: Runnable;
  inputs: StoredInputs;
  asked: Asked[];
  /** About how many bytes go to the thread. */
  bytes: number;
}

/** The most items of one job, and about how many bytes of them. */
const AT_ONCE = 50;
const BYTES_AT_ONCE = 4 * 1024 * 1024;
/** As much is taken for an item whose size nobody knows. */
const UNKNOWN = 256 * 1024;
/** Jobs of more bytes go to a thread one after the other, and others have their turn between them. */
const MUCH = 512 * 1024;
const AFTER_BUSY = 20;

/** What a step may use here. What needs more, or comes with more of an event, runs in a thread. */
const ROOM = {
  limits: { maxMilliseconds: 5, maxSteps: 20_000, maxMemory: 1024 * 1024 },
  clock: () => performance.now(),
};
const LARGEST = 32 * 1024;

/**
 * Runs steps of programs: light ones here, as far as there is time, and others in threads. Those of one function that are
 * asked for at the same time share a job.
 */
export class Compute {
  readonly #runner: Runner;
  readonly #budget = new MainThreadBudget();
  #groups = new Map<string, Group>();
  #isPlanned = false;

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  /** `size`: of what it is given, in bytes. Throws a NoStep if there is no step, and will be none. */
  step(
    projectId: number,
    key: string,
    runnable: Runnable,
    inputs: StoredInputs,
    { item, size }: { item: StepItem; size: number },
  ): Promise<ItemStep> {
    const here = this.#here(projectId, runnable, inputs, item, size);
    if (here) return Promise.resolve(here);
    return new Promise((resolve, reject) => {
      let group = this.#groups.get(key);
      if (!group || group.asked.length >= AT_ONCE || group.bytes >= BYTES_AT_ONCE) {
        if (group) this.#run(group);
        group = { projectId, runnable, inputs, asked: [], bytes: 0 };
        this.#groups.set(key, group);
      }
      group.asked.push({ item, resolve, reject });
      group.bytes += Number.isFinite(size) ? size : UNKNOWN;
      if (this.#isPlanned) return;
      this.#isPlanned = true;
      setImmediate(() => {
        this.#isPlanned = false;
        const groups = this.#groups;
        this.#groups = new Map();
        for (const one of groups.values()) this.#run(one);
      });
    });
  }

  /** Runs a step here. Undefined: it is one for a thread. */
  #here(
    projectId: number,
    { bytecode }: Runnable,
    inputs: StoredInputs,
    item: StepItem,
    size: number,
  ): ItemStep | undefined {
    if (size > LARGEST || !isLight(bytecode, inputs)) return undefined;
    if (!this.#budget.hasTurn || !this.#budget.hasTime(projectId)) return undefined;
    const began = performance.now();
    let step: ItemStep | undefined;
    try {
      step = stepWithin({ bytecode, inputs }, item, ROOM);
    } catch {
      // A thread says what is wrong with it.
    }
    this.#budget.spent(projectId, performance.now() - began);
    if (step && (step.status !== 'failed' || !step.isHeavy)) return step;
    // Nothing has happened: a program only computes.
    this.#budget.exile(projectId);
    return undefined;
  }

  #run(group: Group): void {
    if (group.bytes > MUCH) void nextTurn().then(() => this.#send(group));
    else this.#send(group);
  }

  #send(group: Group): void {
    const { projectId, runnable, inputs, asked } = group;
    this.#runner
      .steps(projectId, { bytecode: runnable.bytecode, inputs, items: asked.map(({ item }) => item) })
      .then(
        (steps) => {
          for (const [index, step] of steps.entries()) {
            if (isNoStep(step)) asked[index]!.reject(step);
            else asked[index]!.resolve(step);
          }
          // What has not had its turn stands at the end of those that wait for a thread.
          const rest = asked.slice(steps.length);
          if (rest.length > 0) this.#run({ ...group, asked: rest });
        },
        (error: Error) => {
          if (error instanceof RunnerBusyError) {
            setTimeout(() => this.#run(group), AFTER_BUSY);
          } else for (const one of asked) one.reject(error);
        },
      );
  }
}
