/** The kinds of functions, and what follows from each. */
export interface FunctionType {
  /** What its code is written in. `ts` becomes JavaScript for browsers, and `hog` becomes bytecode. */
  language: 'hog' | 'ts';
  /** Whether it may have mappings: several sets of filters and inputs under one program. */
  hasMappings: boolean;
  /** Whether functions of this type run one after the other, in `execution_order`. */
  isOrdered: boolean;
  /** Whether it can be tried with an event. */
  isTestable: boolean;
  /** Whether workers run it: its invocations are kept, and can be run again. */
  isQueued: boolean;
}

const HOG: FunctionType = {
  ...{ language: 'hog', hasMappings: false, isOrdered: false, isTestable: true, isQueued: false },
};
const BROWSER: FunctionType = { ...HOG, language: 'ts', isTestable: false };

export const FUNCTION_TYPES = {
  destination: { ...HOG, hasMappings: true, isQueued: true },
  site_destination: { ...BROWSER, hasMappings: true },
  internal_destination: { ...HOG, isQueued: true },
  source_webhook: { ...HOG, isTestable: false, isQueued: true },
  site_app: BROWSER,
  transformation: { ...HOG, isOrdered: true },
} as const satisfies Record<string, FunctionType>;

export type FunctionTypeName = keyof typeof FUNCTION_TYPES;

export const TYPE_NAMES = Object.keys(FUNCTION_TYPES) as [FunctionTypeName, ...FunctionTypeName[]];

export const typeOf = (name: FunctionTypeName): FunctionType => FUNCTION_TYPES[name];
