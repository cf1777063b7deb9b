import type { StoredInputs } from '../rules/definition.ts';
import type { ItemStep, StepItem } from '../run.ts';
import { type Runner, RunnerBusyError, RunnerLimitError } from '../runner.ts';
import type { Runnable } from './contents.ts';

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
}

/** The most items of one job. */
const AT_ONCE = 50;
const AFTER_BUSY = 20;

/** Runs steps of programs in threads. Those of one function that are asked for at the same time share a job. */
export class Compute {
  readonly #runner: Runner;
  #groups = new Map<string, Group>();
  #isPlanned = false;

  constructor(runner: Runner) {
    this.#runner = runner;
  }

  /** Throws a RunnerLimitError if the step was ended from outside. */
  step(
    projectId: number,
    key: string,
    runnable: Runnable,
    inputs: StoredInputs,
    item: StepItem,
  ): Promise<ItemStep> {
    return new Promise((resolve, reject) => {
      let group = this.#groups.get(key);
      if (!group || group.asked.length >= AT_ONCE) {
        if (group) this.#run(group);
        group = { projectId, runnable, inputs, asked: [] };
        this.#groups.set(key, group);
      }
      group.asked.push({ item, resolve, reject });
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

  #run({ projectId, runnable, inputs, asked }: Group): void {
    this.#runner
      .steps(projectId, { bytecode: runnable.bytecode, inputs, items: asked.map(({ item }) => item) })
      .then(
        (steps) => {
          for (const [index, step] of steps.entries()) {
            if (step instanceof RunnerLimitError) asked[index]!.reject(step);
            else asked[index]!.resolve(step);
          }
        },
        (error: Error) => {
          if (error instanceof RunnerBusyError) {
            setTimeout(() => this.#run({ projectId, runnable, inputs, asked }), AFTER_BUSY);
          } else for (const one of asked) one.reject(error);
        },
      );
  }
}
