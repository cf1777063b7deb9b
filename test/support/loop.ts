import { nextTurn } from '../../db/loop-turns.ts';

/** Counts how often the event loop gives others their turn while the work runs. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  // Long work that ran before has left the loop when this one's turn is over.
  await nextTurn();
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  let [turns, isOver] = [0, false];
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await work();
  isOver = true;
  return turns;
}
