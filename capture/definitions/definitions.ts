import { rememberNames } from '../../db/definitions.ts';
import type { Pool } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { Quiet } from '../../telemetry/quiet.ts';
import type { CapturedEvent } from '../captured-event.ts';
import type { SeenName } from './names.ts';
import { ProjectNames } from './project-names.ts';

/** Sees the events that are about to be stored. */
export interface NameWatcher {
  look(projectId: number, event: CapturedEvent): void;
  /** Learns of names that another thread has seen. */
  meet(projectId: number, names: readonly SeenName[], now: number): void;
}

export interface Definitions extends NameWatcher {
  /** Writes the names of a project that wait. When it resolves, they are in the table. */
  flush(projectId: number): Promise<void>;
  /** About the memory that the known names take. */
  bytes(): number;
  /** Writes all names that wait, and stops. */
  close(): Promise<void>;
}

const FLUSH_EVERY = 1_000;
/** So many projects are written at once. The others have their turn a second later. */
const PROJECTS_AT_ONCE = 40;
/** The names of so many projects wait. Those of others are news again when they come again. */
const MOST_QUEUED = 400;
/** About the memory for the names of all projects. Beyond it, the project that was quiet for longest is forgotten. */
const MOST_BYTES = 16 * 1024 * 1024;

/**
 * Gathers the names of events and properties in memory, and writes what is new, or was not written for an hour, once a second:
 * beside the requests and the transactions of events. The names of the last second are lost when the process is killed, unless
 * they come again.
 */
export function createDefinitions({
  pool,
  logger,
  flushEvery = FLUSH_EVERY,
  mostBytes = MOST_BYTES,
}: {
  pool: Pool;
  logger?: Pick<Logger, 'warn'>;
  flushEvery?: number;
  mostBytes?: number;
}): Definitions {
  const projects = new Map<number, ProjectNames>();
  /** Projects with names that wait. The one whose turn is next comes first. */
  const queue = new Set<ProjectNames>();
  const quiet = new Quiet();
  let bytes = 0;
  let writing: Promise<unknown> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  /** Undefined: too much waits, for example because Postgres is away. */
  function namesOf(projectId: number): ProjectNames | undefined {
    const known = projects.get(projectId);
    if (queue.size >= MOST_QUEUED && !(known && queue.has(known))) return undefined;
    if (known) return known;
    const made = new ProjectNames(projectId);
    projects.set(projectId, made);
    return made;
  }

  function enqueue(names: ProjectNames): void {
    if (!names.isWaiting) return;
    queue.add(names);
    if (timer || closed) return;
    timer = setTimeout(() => {
      timer = undefined;
      void inOrder([...queue].slice(0, PROJECTS_AT_ONCE)).catch((err) =>
        quiet.tell((untold) =>
          logger?.warn({ err, untold }, 'names of events and properties could not be written; they are kept'),
        ),
      );
    }, flushEvery).unref();
  }

  function forget(names: ProjectNames): void {
    bytes -= names.bytes;
    projects.delete(names.projectId);
    queue.delete(names);
  }

  /** Forgets projects until the names fit into their memory. */
  function makeRoom(): void {
    if (bytes <= mostBytes) return;
    const idle = [...projects.values()].sort((one, other) => one.usedAt - other.usedAt);
    for (const one of idle) {
      if (bytes <= mostBytes) return;
      if (!one.isWaiting) forget(one);
    }
  }

  async function write(names: ProjectNames): Promise<void> {
    queue.delete(names);
    const batch = names.take();
    if (batch.length === 0) return;
    try {
      const answers = await rememberNames(pool, names.projectId, batch);
      if (!answers) return forget(names);
      const before = names.bytes;
      names.written(batch, answers, Date.now());
      if (projects.get(names.projectId) === names) bytes += names.bytes - before;
      makeRoom();
    } catch (error) {
      names.giveBack(batch);
      throw error;
    } finally {
      if (projects.get(names.projectId) === names) enqueue(names);
    }
  }

  /** One write follows the other, so that they need a single connection. */
  function inOrder(some: readonly ProjectNames[]): Promise<void> {
    const next = writing
      .catch(() => undefined)
      .then(async () => {
        for (const one of some) await write(one);
      });
    writing = next;
    return next.finally(() => {
      for (const one of queue) enqueue(one);
    });
  }

  return {
    look(projectId, event) {
      const names = namesOf(projectId);
      if (!names) return;
      names.look(event);
      if (names.isWaiting) enqueue(names);
    },
    meet(projectId, seen, now) {
      const names = namesOf(projectId);
      if (!names) return;
      names.usedAt = now;
      for (const one of seen) names.meet(one);
      enqueue(names);
    },
    async flush(projectId) {
      const names = projects.get(projectId);
      if (names) await inOrder([names]);
    },
    bytes: () => bytes,
    async close() {
      closed = true;
      clearTimeout(timer);
      await inOrder([...queue]).catch((err) =>
        logger?.warn({ err }, 'the last names of events and properties could not be written'),
      );
    },
  };
}
