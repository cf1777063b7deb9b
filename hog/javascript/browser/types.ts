/** A value of the program or of the page: one of any kind, which the code tells apart itself. */
export type Value = ReturnType<typeof JSON.parse>;

/** One run of compiled code. */
export interface Run {
  steps: number;
  depth: number;
  options: BrowserOptions;
}

/** What a page may hand to a run. */
export interface BrowserOptions {
  functions?: Record<string, (...args: unknown[]) => unknown>;
  onPrint?: (line: string) => void;
  maxSteps?: number;
}

/** A function of the language. */
export type BrowserFunction = (args: Value[], run: Run, name: string) => Value;

/** A function of the language with the fewest and the most arguments that it takes; null: any number. */
export type LibraryEntry = [fewest: number, most: number | null, body: BrowserFunction];

/** What a clock shows. */
export interface Local {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  ms: number;
}
