import type { Logger } from '../../telemetry/logger.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Flood } from './flood.ts';
import type { InternalDispatcher } from './internal.ts';

export interface DispatchLoop {
  /** There may be new events. */
  stir(): void;
  /** Ends after the turn in progress. */
  close(): Promise<void>;
}

/** How often it is looked for functions with too many waiting invocations, in milliseconds. */
const FLOODS_EVERY = 5_000;
/** How often events are looked for that nobody has told of, in milliseconds. */
const LOOK_EVERY = 1_000;
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 10_000;

/** Repeats turns as long as there is something to do, and again when it is stirred. */
export function startLoop(
  turn: () => Promise<number>,
  logger: Pick<Logger, 'warn'>,
  every = LOOK_EVERY,
): DispatchLoop {
  let isClosing = false;
  let isStirred = false;
  let wake: (() => void) | undefined;
  const rest = (milliseconds: number, isFirm = false) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      if (isFirm) return;
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const run = async () => {
    let wait = FIRST_PAUSE;
    while (!isClosing) {
      isStirred = false;
      try {
        const done = await turn();
        wait = FIRST_PAUSE;
        if (done === 0 && !isStirred && !isClosing) await rest(every);
      } catch (error) {
        if (isClosing) return;
        logger.warn({ err: error }, 'events could not be given to functions; trying again');
        await rest(wait, true);
        wait = Math.min(wait * 2, LONGEST_PAUSE);
      }
    }
  };
  const running = run();
  const stir = () => {
    isStirred = true;
    wake?.();
  };
  return {
    stir,
    async close() {
      isClosing = true;
      stir();
      await running;
    },
  };
}

/**
 * Dispatches events until it is closed. Projects whose events lead to much have turns of their own, and so have events that
 * were left for later, and events of Sluice itself.
 */
export function startDispatch(
  dispatcher: Dispatcher,
  internal: InternalDispatcher,
  flood: Flood,
  logger: Pick<Logger, 'warn'>,
): DispatchLoop {
  const turns = [
    ...[() => dispatcher.turn(), () => dispatcher.heavyTurn(), () => dispatcher.lateTurn()],
    ...[() => internal.turn(), () => flood.turn()],
  ];
  const loops = [
    ...turns.map((turn) => startLoop(turn, logger)),
    startLoop(() => flood.look(), logger, FLOODS_EVERY),
  ];
  return {
    stir() {
      // Both take what was just stored.
      loops[0]?.stir();
      loops[1]?.stir();
    },
    async close() {
      await Promise.all(loops.map((one) => one.close()));
      await dispatcher.close();
    },
  };
}
