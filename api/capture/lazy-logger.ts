import type { FastifyBaseLogger } from 'fastify';

type Bindings = Parameters<FastifyBaseLogger['child']>[0];
type Options = Parameters<FastifyBaseLogger['child']>[1];

/**
 * A request's logger that is made when something is logged. Capture logs faults only, and making a logger with the
 * request's id costs as much as parsing an event.
 */
export class LazyLogger implements FastifyBaseLogger {
  readonly #parent: FastifyBaseLogger;
  readonly #bindings: Bindings;
  readonly #options: Options;
  #made: FastifyBaseLogger | undefined;

  constructor(parent: FastifyBaseLogger, bindings: Bindings, options: Options) {
    this.#parent = parent;
    this.#bindings = bindings;
    this.#options = options;
  }

  get #logger(): FastifyBaseLogger {
    this.#made ??= this.#parent.child(this.#bindings, this.#options);
    return this.#made;
  }

  get level() {
    return this.#parent.level;
  }
  set level(level) {
    this.#logger.level = level;
  }

  fatal(...args: unknown[]) {
    (this.#logger.fatal as (...all: unknown[]) => void)(...args);
  }
  error(...args: unknown[]) {
    (this.#logger.error as (...all: unknown[]) => void)(...args);
  }
  warn(...args: unknown[]) {
    (this.#logger.warn as (...all: unknown[]) => void)(...args);
  }
  info(...args: unknown[]) {
    (this.#logger.info as (...all: unknown[]) => void)(...args);
  }
  debug(...args: unknown[]) {
    (this.#logger.debug as (...all: unknown[]) => void)(...args);
  }
  trace(...args: unknown[]) {
    (this.#logger.trace as (...all: unknown[]) => void)(...args);
  }
  silent(...args: unknown[]) {
    (this.#logger.silent as (...all: unknown[]) => void)(...args);
  }
  child(bindings: Bindings, options?: Options) {
    return this.#logger.child(bindings, options as Options);
  }
}
