/** Any value of the program or of the page. The code checks its type at run time. */
export type Value = ReturnType<typeof JSON.parse>;

/** One run of compiled code. */
export interface Run {
  steps: number;
  depth: number;
  options: BrowserOptions;
}

/** The options that a page can pass to a run. */
export interface BrowserOptions {
  functions?: Record<string, (...args: unknown[]) => unknown>;
  onPrint?: (line: string) => void;
  maxSteps?: number;
}

/** The implementation of a Hog function. */
export type BrowserFunction = (args: Value[], run: Run, name: string) => Value;

/** A Hog function with the fewest and the most arguments that it takes. A null maximum means any number. */
export type LibraryEntry = [fewest: number, most: number | null, body: BrowserFunction];

/** The date and time that a clock shows. */
export interface Local {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
  ms: number;
}
