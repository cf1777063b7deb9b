// Finds out for many stored events which functions would run. It is called in threads.
import { createHash } from 'node:crypto';
import type { Bytecode } from '../hog/bytecode/index.ts';
import { maskKey, matches, surroundingsIn } from './evaluate.ts';
import { filterGlobals } from './rules/globals.ts';
import type { MaskKey } from './rules/masking.ts';
import { frameOf, globalsOfStored, type OtherFacts, type StoredEvent } from './rules/stored-event.ts';
import type { Scanned } from './rules/tally.ts';
import type { FunctionTypeName } from './rules/types.ts';
import type { FunctionFilters } from './rules/variants.ts';

/** What of a version of a function decides whether it runs. */
export interface Trigger {
  filters: FunctionFilters;
  /** The template of the key of masking. Null: nothing is masked. */
  masking: Bytecode | null;
}

export interface ScanJob {
  kind: 'scan';
  type: FunctionTypeName;
  events: readonly StoredEvent[];
  facts: OtherFacts;
  /** Versions of one function. Each is asked about each event. */
  triggers: readonly Trigger[];
}

/** Processor time in milliseconds after which a scan answers with what it has. */
const LONGEST = 250;

/** Answers for the first of the events, at least for one: for as many as fit into the time. */
export function scan({ events, facts, triggers, type }: ScanJob): Scanned[][] {
  const scanned: Scanned[][] = [];
  const began = process.threadCpuUsage();
  for (const event of events) {
    const globals = globalsOfStored(event, facts, type);
    const seen = filterGlobals(globals, event.listed_in);
    scanned.push(triggers.map((trigger) => ask(trigger, event, globals, seen)));
    const { user, system } = process.threadCpuUsage(began);
    if (user + system > LONGEST * 1_000) break;
  }
  return scanned;
}

type Seen = Record<string, unknown>;

function ask({ filters, masking }: Trigger, event: StoredEvent, globals: Seen, seen: Seen): Scanned {
  const around = surroundingsIn(frameOf(event));
  const own = matches(filters.own, seen, around);
  if (!own.matched) return failing(0, own.error);
  const mapped = filters.mappings?.map((one) => matches(one, seen, around));
  const invocations = mapped ? mapped.filter(({ matched }) => matched).length : 1;
  const answer = failing(invocations, mapped?.find(({ error }) => error !== undefined)?.error);
  return masking && invocations > 0
    ? { ...answer, mask: shortened(maskKey(masking, globals, around)) }
    : answer;
}

const failing = (invocations: number, error: string | undefined): Scanned =>
  error === undefined ? { invocations } : { invocations, error };

const shortened = ({ key, ...more }: MaskKey): MaskKey => ({
  ...more,
  key: key && createHash('sha256').update(key).digest('base64').slice(0, 20),
});
