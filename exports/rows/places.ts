// The words of places: who asks for one, who has one, and the lock under which all statements give them away.
import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { LOCK_KINDS } from './locks.ts';

/** Schedules and "run now" use one lane, backfills and verifications the other. Each has places of its own. */
export const LANES = ['exports', 'backfills'] as const;
export type Lane = (typeof LANES)[number];

export interface PlaceKey {
  projectId: number;
  /** The id of the run or, of a verification, that of its workflow's run. */
  id: string;
}

/** Who asks for a place. */
export interface Claim extends PlaceKey {
  exportId: string;
  kind: 'run' | 'verification';
  lane: Lane;
  /** The workflow that is told when a place is free. */
  workflowId: string;
}

/** A place that an attempt has. */
export interface Place {
  fence: number;
  /** Counts the attempts at the work, from 1, however often its activity was scheduled anew. */
  attempts: number;
  /** For how many milliseconds each renewal keeps the place. */
  lease: number;
}

/** Somebody for whom a place is kept. */
export interface Called {
  project_id: number;
  id: string;
  /** The workflow that has to be told, unless the activity still asks by itself. */
  workflow_id: string;
  asks: boolean;
}

/** How long things about places last, in milliseconds. */
export interface PlaceTimes {
  /** How long an attempt keeps its place without renewing it. */
  lease: number;
  /** How long a place is kept for somebody who was told. */
  reservation: number;
  /** How long an export that does not get on stands behind the others of equal right. */
  setback: number;
  /** How long an activity itself waits for a place before its workflow does. */
  ask: number;
}

export const NEXT_FENCE = "nextval('batch_export_fences')";
export const NOW = 'clock_timestamp()';
export const within = (parameter: string) => `${NOW} + ${parameter} * interval '1 millisecond'`;
/** Says in SQL that a run has not ended. */
export const openRun = (project: string, id: string) => `exists (
  select from batch_export_runs r
  where r.project_id = ${project} and r.id = ${id} and r.status in ('Starting', 'Running'))`;

/** The exports that do not get on, in SQL: an attempt at one of their open runs has failed, or stands still. */
export const FAILING = 'select distinct project_id, batch_export_id from batch_export_places where failed';
/** Says in SQL that the last work of an export that ended was completed. A new export has yet to show that it gets on. */
export const isProven = (project: string, exportId: string) => `coalesce((
  select t.proven from batch_export_turns t
  where t.project_id = ${project} and t.lane in ('exports', 'backfills') and t.batch_export_id = ${exportId}
  order by t.given_at desc limit 1), false)`;

/** How many places of a worker may be held by exports that fail or are not proven, and be given away a second time, in SQL. */
export const SPARE = '(places + 1) / 2';

/** Writes down that exports got a place. What is known of them goes along, so that the latest turn says it. */
export const TURN_OF = (given: string) => `turn as (
  insert into batch_export_turns (project_id, lane, batch_export_id, given_at, proven)
  select project_id, lane, batch_export_id, ${NOW}, ${isProven(`${given}.project_id`, `${given}.batch_export_id`)}
  from ${given}
  on conflict (project_id, lane, batch_export_id)
  do update set given_at = excluded.given_at, proven = excluded.proven)`;

/** How long a process that stands still may hold the lock, in milliseconds. Everybody else waits for it. */
const LONGEST_PAUSE = 5_000;

/** Does work while nobody else gives places of the lane away. */
export function locked<T>(pool: Pool, lane: Lane, work: (client: Transaction) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await client.query(
      `select set_config('idle_in_transaction_session_timeout', $3::text, true), pg_advisory_xact_lock($1, $2)`,
      [LOCK_KINDS.places, LANES.indexOf(lane), LONGEST_PAUSE],
    );
    return work(client);
  });
}
