// The one door to the package of the reference machine: a CommonJS module, whose names only its default
// export has.
import hogvm from '@posthog/hogvm';

export type { ExecOptions, HogClosure, HogError } from '@posthog/hogvm';

export const {
  STL,
  isHogCallable,
  isHogClosure,
  isHogDate,
  isHogDateTime,
  isHogError,
  newHogCallable,
  newHogClosure,
  newHogError,
  printHogStringOutput,
  printHogValue,
  unifyComparisonTypes,
} = hogvm;
