import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import { ChildLog } from './child-log.ts';
import { forgetProcess, recordProcess } from './leftovers.ts';
import { type Report, StackProblem } from './problem.ts';
import { asService, type Service, type StopOptions } from './process.ts';

export interface ProgramOptions {
  /** `API` or `worker`, as the terminal calls it. */
  name: string;
  /** The TypeScript file to run. */
  file: string;
  /** Options of Node itself. */
  nodeOptions?: readonly string[];
  env: NodeJS.ProcessEnv;
  dataDir: string;
  logFile: string;
  report: Report;
}

export interface Program extends Service {
  /** Settles when the process has sent `{ ready: true }`; never rejects. */
  readyMessage: Promise<void>;
}

/**
 * Starts one of Sluice's own processes. It gets its own process group, so that Ctrl-C in the terminal does not reach
 * it. It also gets a channel to this process, so that it ends when this process is gone.
 */
export async function startProgram(options: ProgramOptions): Promise<Program> {
  const log = new ChildLog(options.logFile, options.name, options.report);
  const child = spawn(process.execPath, [...(options.nodeOptions ?? []), options.file], {
    env: options.env,
    stdio: ['ignore', log.handle, log.handle, 'ipc'],
    detached: true,
  });
  child.once('exit', () => log.close());
  const readyMessage = new Promise<void>((resolve) => {
    child.on('message', (message: { ready?: boolean }) => {
      if (message?.ready) resolve();
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('error', (error) => {
      log.close();
      reject(error);
    });
    child.once('spawn', resolve);
  });
  recordProcess(options.dataDir, options.name, child.pid as number);
  const service = asService(child, [
    { signal: 'SIGTERM', milliseconds: 3_500 },
    { signal: 'SIGKILL', milliseconds: 1_000 },
  ]);
  return {
    ...service,
    readyMessage,
    async stop(how?: StopOptions) {
      await service.stop(how);
      forgetProcess(options.dataDir, options.name);
    },
  };
}

/** Waits until the API answers 200 on /_readyz. */
export async function waitForApi(
  api: Service,
  url: string,
  logFile: string,
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const limit = Date.now() + 60_000;
  let nextLine = Date.now() + 2_000;
  let state = 'it does not listen yet';
  let ended = false;
  void api.exited.then(() => {
    ended = true;
  });
  for (;;) {
    signal.throwIfAborted();
    if (ended) throw new StackProblem(`The API ended during its start. See ${logFile} for the reason.`);
    try {
      const response = await fetch(`${url}/_readyz`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]),
      });
      if (response.ok) return;
      state = `/_readyz answers ${response.status}: ${(await response.text()).slice(0, 300)}`;
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string } };
      if (cause?.code !== 'ECONNREFUSED') state = cause?.code ?? message;
    }
    if (Date.now() > limit) {
      throw new StackProblem(
        `The API did not become ready within a minute (${state}). See ${logFile} for the reason.`,
      );
    }
    if (Date.now() >= nextLine) {
      report(`  waiting for the API (${state}) …`);
      nextLine = Date.now() + 3_000;
    }
    await pause(50);
  }
}
