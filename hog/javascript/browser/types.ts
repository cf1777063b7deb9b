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

/**
 * A Hog function with the fewest and the most arguments that it takes, and what it wants of them. A null maximum means
 * any number. The arguments of a strict function are checked before the call.
 */
export type LibraryEntry = [
  fewest: number,
  most: number | null,
  body: BrowserFunction,
  wanted: (string | null)[],
  isStrict: boolean,
  /** Null as the first argument is answered with null. */
  isNullable: boolean,
  /** The function takes exactly as many arguments as it names. */
  isExact: boolean,
];

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
