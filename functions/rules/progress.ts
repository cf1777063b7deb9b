/** One attempt of a request, as people see it: without secrets, and shortened. */
export interface AttemptRecord {
  /** Which request of the program, from 0. */
  step: number;
  /** Which attempt of it, from 1. */
  attempt: number;
  at: string;
  duration_ms: number;
  method: string;
  url: string;
  request_body: string | null;
  /** Null: there was no answer. */
  status: number | null;
  response_body: string | null;
  error: string | null;
}

/** How far an invocation is, when it waits or when a further request is made. A program runs again up to here. */
export interface Progress {
  /** What the program got for each thing that it has waited for. */
  answers: unknown[];
  attempts: AttemptRecord[];
  /** How many of its printed lines are stored already. */
  printed: number;
  /** Whether a request before has failed for good. The program goes on, but the invocation ends as failed. */
  failed: boolean;
}

export const NO_PROGRESS: Progress = Object.freeze({ answers: [], attempts: [], printed: 0, failed: false });
