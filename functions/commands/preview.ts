import { randomUUID } from 'node:crypto';
import { refuse } from '../../refusals.ts';
import { findEventAt } from '../rows/events.ts';
import { changedSecrets } from '../rules/changed-secrets.ts';
import type { CompiledContent } from '../rules/definition.ts';
import type { MockedAnswer } from '../rules/mocks.ts';
import { Room } from '../rules/room.ts';
import { frameOf, globalsOfStored, type OtherFacts, type StoredEvent } from '../rules/stored-event.ts';
import type { MatchedEvent, VersionCounts, VersionOutcome } from '../rules/tally.ts';
import { type EffectDifference, effectDifferences } from '../rules/trial-difference.ts';
import { type FunctionTypeName, typeOf } from '../rules/types.ts';
import { filtersOf } from '../rules/variants.ts';
import { wantedNames } from '../rules/wanted-names.ts';
import { RunnerBusyError, RunnerLimitError } from '../runner.ts';
import { type ScannedVersion, scanEvents } from './scan-events.ts';
import { SHOWN_CHARACTERS, type Tried, type TryDependencies, tryFunction } from './try-function.ts';

/** What somebody wants to know of a function before it runs. */
export interface PreviewQuery {
  type: FunctionTypeName;
  proposed: CompiledContent;
  /** The version that runs, with which the proposed one is compared. Null: there is nothing to compare. */
  running: CompiledContent | null;
  facts: OtherFacts;
  after: string;
  before: string;
  /** The most events that are looked at. */
  mostEvents: number;
  /** How many events are tried. */
  sample: number;
  answers: readonly MockedAnswer[];
}

/** What one version would do with one event. */
export interface PreviewedTrial extends Tried {
  /** Whether masking leaves the event out. The trial shows what would be sent otherwise. */
  masked: boolean;
}

export interface PreviewedEvent {
  event: Pick<StoredEvent, 'uuid' | 'event' | 'distinct_id' | 'timestamp'>;
  proposed: PreviewedTrial;
  running: PreviewedTrial | null;
  /** Null: there is nothing to compare. */
  differences: EffectDifference[] | null;
}

export interface Preview {
  searched: { events: number; too_large: number; is_complete: boolean; oldest: string | null };
  proposed: VersionCounts;
  running: VersionCounts | null;
  /** For how many events both versions would run, and only one of them. Null: there is nothing to compare. */
  matches: { both: number; only_proposed: number; only_running: number } | null;
  /**
   * The secret inputs whose values differ, such as `inputs.key`. Values are hidden in effects, so the sample does not show
   * them. Null: there is nothing to compare.
   */
  changed_secrets: string[] | null;
  sample: PreviewedEvent[];
  /** False: there was no time to try all events of the sample. */
  is_sample_complete: boolean;
}

/** Milliseconds after which the search, and the whole preview, end with what they have. */
export interface PreviewTimes {
  search: number;
  whole: number;
}

const TIMES: PreviewTimes = { search: 15_000, whole: 25_000 };
const RETRY_SECONDS = 5;

/**
 * Shows what a function would do with the stored events of a time range: how many it would run for, what masking would
 * leave out, and for a sample what it would send. Nothing is sent, and nothing is stored.
 */
export async function previewFunction(
  deps: TryDependencies,
  query: PreviewQuery,
  signal?: AbortSignal,
  times = TIMES,
): Promise<Preview> {
  const { type, facts, after, before, mostEvents } = query;
  if (!typeOf(type).isTestable) {
    throw refuse.invalid('type', `Functions of type ${type} do not run for stored events.`);
  }
  const began = performance.now();
  const contents = [query.proposed, ...(query.running ? [query.running] : [])];
  try {
    const scan = await scanEvents(
      deps,
      {
        ...{ type, facts, after, before, mostEvents, deadline: began + times.search },
        names: wantedNames(contents.map(({ filters }) => filters)),
        versions: contents.map(versionOf),
      },
      signal,
    );
    const { counts, common, matches } = scan.tally;
    const [proposed, running = null] = counts as [VersionCounts, VersionCounts?];
    const chosen = choose(matches, query.sample);
    const sample = await new Sample(deps, query, contents, signal).of(chosen, began + times.whole);
    return {
      searched: {
        events: scan.searched,
        too_large: scan.tooLarge,
        is_complete: scan.isComplete,
        oldest: scan.oldest,
      },
      proposed,
      running,
      matches: running && {
        both: common,
        only_proposed: proposed.matched - common,
        only_running: running.matched - common,
      },
      changed_secrets: query.running && changedSecrets(query.running, query.proposed),
      sample,
      is_sample_complete: sample.length === chosen.length,
    };
  } catch (error) {
    if (error instanceof RunnerBusyError) throw refuse.unavailable(error.message, RETRY_SECONDS);
    if (error instanceof RunnerLimitError) throw refuse.invalid(null, error.message);
    throw error;
  }
}

const versionOf = (content: CompiledContent): ScannedVersion => ({
  filters: filtersOf(content),
  masking: (content.masking?.bytecode ?? null) as ScannedVersion['masking'],
  rule: content.masking,
});

const passes = ({ versions }: MatchedEvent) => versions.some(({ passed }) => passed > 0);
const differs = ({ versions }: MatchedEvent) =>
  new Set(versions.map(({ invocations }) => invocations > 0)).size > 1;

/**
 * Chooses events to try, newest first. Up to half of them are events that only one version would run for. Events that
 * masking leaves out come last.
 */
function choose(matches: readonly MatchedEvent[], sample: number): MatchedEvent[] {
  const ranked = [
    ...matches.filter(differs).slice(0, Math.ceil(sample / 2)),
    ...matches.filter(passes),
    ...matches,
  ];
  const chosen = new Set([...new Set(ranked)].slice(0, sample));
  return matches.filter((one) => chosen.has(one));
}

/** Tries versions of a function with events, each with the same clock, random numbers and answers. */
class Sample {
  readonly #room = new Room(SHOWN_CHARACTERS);
  readonly #seed = randomUUID();
  readonly #deps: TryDependencies;
  readonly #query: PreviewQuery;
  readonly #contents: readonly CompiledContent[];
  readonly #signal: AbortSignal | undefined;

  constructor(
    deps: TryDependencies,
    query: PreviewQuery,
    contents: readonly CompiledContent[],
    signal: AbortSignal | undefined,
  ) {
    this.#deps = deps;
    this.#query = query;
    this.#contents = contents;
    this.#signal = signal;
  }

  /** Tries the events, as far as the time reaches. */
  async of(chosen: readonly MatchedEvent[], deadline: number): Promise<PreviewedEvent[]> {
    const tried: PreviewedEvent[] = [];
    const late = AbortSignal.timeout(Math.max(0, Math.ceil(deadline - performance.now())));
    const signal = this.#signal ? AbortSignal.any([this.#signal, late]) : late;
    try {
      for (const one of chosen) {
        signal.throwIfAborted();
        const { project } = this.#query.facts;
        const stored = await this.#deps.read((client) => findEventAt(client, project.id, one));
        // It may have been deleted since the search.
        if (stored) tried.push(await this.#try(stored, one.versions, signal));
      }
    } catch (error) {
      // A single event may have many mappings, each of which takes its time.
      if (error !== late.reason || this.#signal?.aborted) throw error;
    }
    return tried;
  }

  async #try(
    stored: StoredEvent,
    outcomes: readonly VersionOutcome[],
    signal: AbortSignal,
  ): Promise<PreviewedEvent> {
    const { type, facts, answers } = this.#query;
    const trials: PreviewedTrial[] = [];
    for (const [index, content] of this.#contents.entries()) {
      const { invocations = 0, passed = 0 } = outcomes[index] ?? {};
      const trial = {
        ...{ projectId: facts.project.id, type, content, answers, isMocked: true },
        ...{ globals: globalsOfStored(stored, facts, type), frame: frameOf(stored) },
        ...{ room: this.#room, seed: this.#seed },
      };
      const result = await tryFunction(this.#deps, trial, signal);
      trials.push({ ...result, masked: invocations > 0 && passed === 0 });
    }
    const [proposed, running = null] = trials as [PreviewedTrial, PreviewedTrial?];
    const { uuid, event, distinct_id, timestamp } = stored;
    return {
      event: { uuid, event, distinct_id, timestamp },
      proposed,
      running,
      differences: running && effectDifferences(effectsOf(running), effectsOf(proposed)),
    };
  }
}

/** What a trial would do to the world. A masked one does nothing. */
const effectsOf = ({ masked, invocations }: PreviewedTrial) =>
  masked ? invocations.map((one) => ({ ...one, ...MASKED })) : invocations;
const MASKED = { status: 'masked', result: null, errors: [], captured: [], fetches: [] };
