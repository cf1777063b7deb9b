import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import type { Definitions } from '../../flags/cache/definitions.ts';
import { localDefinitions } from '../../flags/local-definitions.ts';
import { cacheOfSize } from '../../values/cache-of-size.ts';
import { ApiError, errors } from '../errors.ts';
import type { Answer } from '../public/answer.ts';
import type { LaneRequest } from '../public/direct.ts';
import { type Packed, packed, packedAnswer } from '../public/packed.ts';
import type { Metered } from './metered.ts';

/** The paths that SDKs ask. */
export const DEFINITION_PATHS = ['/flags/definitions', '/api/feature_flag/local_evaluation/'];
/** A request line may contain a whole URL. */
const ALWAYS_WITH_COHORTS = /^(?:https?:\/\/[^/?#]*)?\/flags\/definitions/i;

/** Whether a request wants cohorts. The path of today always has them, and the older one if the query says so. */
export function wantsCohorts({ url = '' }: { url?: string | undefined }): boolean {
  if (ALWAYS_WITH_COHORTS.test(url)) return true;
  const query = url.indexOf('?');
  return query >= 0 && new URLSearchParams(url.slice(query)).has('send_cohorts');
}

/** SDKs ask again with the ETag, and get 304 as long as nothing has changed. */
const CACHE = 'private, must-revalidate';
/** How many bytes of bodies are kept. Those that nobody asks for go first. */
const MOST_KEPT = 64 * 1024 * 1024;
/** How long a request that was admitted is admitted again without asking the database, in milliseconds. */
const ADMITTED_FOR = 5_000;
const MOST_ADMITTED = 10_000;
const LONGEST_ADMITTED = 512;

/** SDKs let go of their definitions then. */
const quotaExceeded = () =>
  new ApiError(402, {
    type: 'quota_limited',
    code: 'payment_required',
    detail: 'You have exceeded your feature flag request quota',
    attr: null,
  });

/** The key and the place that a request shows, as one text. Undefined: it is not remembered. */
function shownBy({ headers, url = '' }: IncomingMessage): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined || authorization.length + url.length > LONGEST_ADMITTED) return undefined;
  return `${authorization}\n${url}`;
}

/**
 * The requests that were admitted lately, and the projects that they asked for. Servers of one fleet ask with the same key, again
 * and again: the database need not be asked for each of them.
 */
export class Admitted {
  readonly #projects = new LRUCache<string, { projectId: number; until: number }>({ max: MOST_ADMITTED });
  readonly #milliseconds: number;
  readonly #now: () => number;

  constructor(milliseconds: number, now: () => number = Date.now) {
    this.#milliseconds = milliseconds;
    this.#now = now;
  }

  note(request: IncomingMessage, projectId: number): void {
    const shown = shownBy(request);
    if (shown === undefined) return;
    this.#projects.set(shown, { projectId, until: this.#now() + this.#milliseconds });
  }

  /** Whether the request was admitted lately. Otherwise it must be checked. */
  has(request: IncomingMessage): boolean {
    const found = this.#projects.get(shownBy(request) ?? '');
    return found !== undefined && this.#now() < found.until;
  }

  /** The project that an admitted request asks for. */
  projectOf(request: IncomingMessage): number {
    const found = this.#projects.get(shownBy(request) ?? '');
    if (!found) throw errors.notFound();
    return found.projectId;
  }
}

interface Kept {
  revision: number;
  body: Promise<Packed>;
  /** Undefined: it is still being made. */
  packed: Packed | undefined;
}

const bytesOf = ({ packed }: Kept) => (packed ? packed.plain.length + packed.gzip.length : 0);

/** Answers with definitions for SDKs that evaluate flags by themselves. */
export interface DefinitionAnswers {
  admitted: Admitted;
  /** Throws what refuses the request. */
  answer(
    request: Pick<LaneRequest, 'headers'>,
    projectId: number,
    options: { hasCohorts: boolean },
  ): Answer | Promise<Answer>;
}

export function createDefinitionAnswers(deps: {
  definitions: Definitions;
  metered: Metered;
  /** Without it, each request is checked. */
  remembers: boolean;
}): DefinitionAnswers {
  const { definitions, metered } = deps;
  /** The bodies of projects. One is made anew only when a definition has changed. */
  const bodies = cacheOfSize<string, Kept>(MOST_KEPT, bytesOf);
  const nameOf = (projectId: number, hasCohorts: boolean) => `${projectId}${hasCohorts ? '' : ' without'}`;

  /** Drops a body, unless there is another one by now. */
  const dropped = (made: Kept, name: string) => bodies.peek(name) === made && bodies.delete(name);

  function make(project: Parameters<typeof localDefinitions>[0], hasCohorts: boolean): Kept {
    const { projectId, revision } = project;
    const name = nameOf(projectId, hasCohorts);
    const body = localDefinitions(project, { hasCohorts }).then(packed);
    const made: Kept = { revision, body, packed: undefined };
    bodies.set(name, made);
    made.body.then(
      (body) => {
        made.packed = body;
        // Its size is known only now.
        if (dropped(made, name)) bodies.set(name, made);
      },
      () => dropped(made, name),
    );
    return made;
  }

  function answer(
    request: Pick<LaneRequest, 'headers'>,
    projectId: number,
    { hasCohorts }: { hasCohorts: boolean },
  ): Answer | Promise<Answer> {
    const project = definitions.of(projectId);
    if (project instanceof Promise) return project.then((found) => told(request, found, hasCohorts));
    return told(request, project, hasCohorts);
  }

  function told(
    request: Pick<LaneRequest, 'headers'>,
    project: Awaited<ReturnType<Definitions['of']>>,
    hasCohorts: boolean,
  ): Answer | Promise<Answer> {
    if (!project) throw errors.notFound();
    const write = (isAllowed: boolean): Answer | Promise<Answer> => {
      if (!isAllowed) throw quotaExceeded();
      const known = bodies.get(nameOf(project.projectId, hasCohorts));
      const kept = known?.revision === project.revision ? known : make(project, hasCohorts);
      const withBody = (body: Packed) => packedAnswer(request, body, 'application/json', CACHE);
      return kept.packed ? withBody(kept.packed) : kept.body.then(withBody);
    };
    const taken = metered.takeDefinitions(project);
    return taken instanceof Promise ? taken.then(write) : write(taken);
  }

  return { admitted: new Admitted(deps.remembers ? ADMITTED_FOR : 0), answer };
}
