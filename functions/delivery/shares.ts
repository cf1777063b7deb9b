import type { Line, Lines } from './lines.ts';
import { PerProject } from './per-project.ts';

/** How many places a function may fill. */
export interface Share {
  line: Line;
  count: number;
}

/** What this process has at work. */
export class Load {
  /** Invocations in progress. */
  readonly inProgress = new PerProject();
  /** Places that claims under way may fill. */
  readonly reserved = new PerProject();
  /** The characters of the events in progress, and what paused programs take, in bytes. */
  readonly characters = new PerProject();
  /** How many times events are being read. */
  readonly reading = new PerProject();
  /** Results that are not written yet. */
  readonly unwritten = new PerProject();
}

const LINES_AT_ONCE = 50;
const MOST_OF_ONE = 100;
/** Which part a project may have of the places that others do not hold, however many functions it has. */
const OF_A_PROJECT = 0.75;
/** Which part of these a function may have of what the others of its project leave. */
const OF_A_FUNCTION = 2 / 3;
/** How much of that those of a project may have in progress, and all together. */
const MOST_CHARACTERS = { ofProject: 32_000_000, ofAll: 128_000_000 };
/** How many times events of a project are read at once. With the turns of the dispatch, they leave a connection to others. */
const MOST_READS = 3;
/** Results that are not written yet: at most so many for each place, and of one project a part of them. */
const UNWRITTEN = 4;
const UNWRITTEN_OF_A_PROJECT = 0.5;

/** Answers whether an invocation that has its `own` already may take more. One alone always may. */
export function hasRoomFor(
  { characters }: Pick<Load, 'characters'>,
  projectId: number,
  { bytes, own }: { bytes: number; own: number },
): boolean {
  const ofOthers = characters.of(projectId) - own;
  return (
    ofOthers <= 0 ||
    (characters.of(projectId) + bytes <= MOST_CHARACTERS.ofProject &&
      characters.all + bytes <= MOST_CHARACTERS.ofAll)
  );
}

/** The first lines in an order. A project may have thousands, and they are asked for often: the rest needs no order. */
function firstOf(
  lines: Iterable<Line>,
  isDue: (line: Line) => boolean,
  compare: (one: Line, other: Line) => number,
): Line[] {
  const found: Line[] = [];
  let last: Line | undefined;
  const cut = () => {
    found.sort(compare).splice(LINES_AT_ONCE);
    last = found[LINES_AT_ONCE - 1];
  };
  for (const line of lines) {
    if (!isDue(line) || (last && compare(line, last) >= 0)) continue;
    found.push(line);
    if (found.length === LINES_AT_ONCE * 2) cut();
  }
  cut();
  return found;
}

export interface ShareOptions {
  places: number;
  mayBeClaimed(line: Line): boolean;
  /** Which lines have a share. Absent: all. */
  all?: Iterable<Line>;
}

/**
 * Divides the free places among functions for which something is due. A project gets at most a part of what others leave, a
 * function a part of what its project has left, and those of projects with the fewest come first.
 */
export function sharesOf(
  lines: Lines,
  load: Load,
  { places, mayBeClaimed, all = lines.all }: ShareOptions,
): Share[] {
  const now = Date.now();
  let free = places - load.inProgress.all - load.reserved.all;
  const mostUnwritten = places * UNWRITTEN;
  if (free <= 0 || load.unwritten.all > mostUnwritten) return [];
  const hasRoom = ({ projectId }: Line) =>
    load.unwritten.of(projectId) <= mostUnwritten * UNWRITTEN_OF_A_PROJECT &&
    load.reading.of(projectId) < MOST_READS &&
    load.characters.of(projectId) <= MOST_CHARACTERS.ofProject &&
    (load.characters.all <= MOST_CHARACTERS.ofAll || load.characters.of(projectId) === 0);
  const heldBy = ({ projectId }: Line) => load.inProgress.of(projectId) + load.reserved.of(projectId);
  // Degraded functions come after the others.
  const rank = ({ functionId }: Line) => (lines.isDegraded(functionId) ? 1 : 0);
  const due = firstOf(
    all,
    (one) => one.dueAt <= now && mayBeClaimed(one) && hasRoom(one),
    (a, b) => rank(a) - rank(b) || heldBy(a) - heldBy(b) || a.inFlight - b.inFlight || a.dueAt - b.dueAt,
  );
  const shares: Share[] = [];
  const given = new PerProject();
  for (const line of due) {
    const held = heldBy(line) + given.of(line.projectId);
    const room = (free + held) * OF_A_PROJECT - held;
    const most = Math.min(MOST_OF_ONE, lines.policyOf(line.functionId).max_concurrency ?? MOST_OF_ONE);
    // What it holds already counts, so that nobody fills all places bit by bit.
    const count = Math.min(most, Math.ceil((room + line.inFlight) * OF_A_FUNCTION - line.inFlight));
    if (count <= 0) continue;
    shares.push({ line, count });
    given.add(line.projectId, count);
    free -= count;
  }
  return shares;
}
