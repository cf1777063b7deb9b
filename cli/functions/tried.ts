/** What the server answers to a test. */
export interface Tried {
  status: 'success' | 'error' | 'skipped';
  result: unknown;
  errors: string[];
  logs: { level: string; message: string }[];
  invocations: { mapping: string | null; status: string; fetches: TriedFetch[]; captured: unknown[] }[];
  event: { uuid?: string; event?: string };
  duration_ms: number;
}

/** A request of a program. */
export interface TriedFetch {
  url: string;
  method: string;
  headers: Record<string, string>;
  body: string | null;
  mocked: boolean;
  duration_ms: number;
  response: { status: number; body: unknown } | null;
  error: string | null;
}
