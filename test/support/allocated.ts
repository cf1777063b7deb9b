import type { TestNamespace } from './temporal.ts';

/** The namespaces of Temporal that the tests of this file have taken. */
export const allocated: TestNamespace[] = [];
