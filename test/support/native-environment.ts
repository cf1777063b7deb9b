import { TestEnvironment } from 'jest-environment-node';

/**
 * What Jest evaluates itself, above all `expect`, gets the classes that the tests have (see `native-runtime.ts`). So
 * `expect.any(Number)` knows their numbers.
 */
export default class NativeEnvironment extends TestEnvironment {
  constructor(...given: ConstructorParameters<typeof TestEnvironment>) {
    super(...given);
    const classes = Object.entries(Object.getOwnPropertyDescriptors(globalThis))
      .filter(([name, { value }]) => typeof value === 'function' && /^[A-Z]/.test(name))
      .map(([name, { value }]) => [name, value]);
    Object.assign(this.global, Object.fromEntries(classes));
  }
}
