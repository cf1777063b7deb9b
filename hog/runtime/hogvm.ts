// The only import of the reference VM. The package is a CommonJS module, and only its default export has the names.
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
