// Renders Liquid templates of inputs. They see the given values and nothing else: no files, no other templates, no
// properties of JavaScript's prototypes.
import { Liquid } from 'liquidjs';
import { decodeTags } from './entities.ts';

export interface LiquidOptions {
  /** The value of `now`. */
  now: Date;
  limits?: Partial<LiquidLimits>;
}

export interface LiquidLimits {
  /** The longest template, in characters. */
  maxLength: number;
  /** How long rendering may take. */
  maxMilliseconds: number;
  /** How many characters and elements rendering may make. */
  maxMemory: number;
  /** The longest result, in characters. */
  maxOutput: number;
}

export const LIQUID_LIMITS: LiquidLimits = {
  maxLength: 100_000,
  maxMilliseconds: 500,
  maxMemory: 10_000_000,
  maxOutput: 1_000_000,
};

/** A template cannot be read or rendered. */
export class LiquidError extends Error {
  override readonly name = 'LiquidError';
}

/** Tags that read other templates. */
const REFUSED = ['include', 'render', 'layout', 'block'];

function engineOf({ maxLength, maxMilliseconds, maxMemory }: LiquidLimits): Liquid {
  const engine = new Liquid({
    ownPropertyOnly: true,
    outputEscape: 'escape',
    strictFilters: true,
    relativeReference: false,
    dynamicPartials: false,
    // Templates in memory instead of files: none.
    templates: {},
    parseLimit: maxLength,
    renderLimit: maxMilliseconds,
    memoryLimit: maxMemory,
  });
  for (const name of REFUSED) delete engine.tags[name];
  return engine;
}

/**
 * Renders a template with plain values. HTML in values is escaped, unless the template says `raw`. Throws a
 * `LiquidError`.
 */
export function renderLiquid(template: string, globals: object, { now, limits }: LiquidOptions): string {
  const allowed = { ...LIQUID_LIMITS, ...limits };
  if (template.length > allowed.maxLength) throw new LiquidError('parse length limit exceeded');
  let output: unknown;
  try {
    output = engineOf(allowed).parseAndRenderSync(decodeTags(template), { ...globals, now });
  } catch (error) {
    throw new LiquidError(reasonOf(error));
  }
  const text = String(output);
  if (text.length > allowed.maxOutput) throw new LiquidError('liquid output limit exceeded');
  return text;
}

const LIMITS = [
  'memory alloc limit exceeded',
  'template render limit exceeded',
  'parse length limit exceeded',
];

/** Returns the message of an error of the library. It adds the place in the template. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const limit = LIMITS.find((one) => message.includes(one));
  if (limit) return limit;
  if (error instanceof RangeError) return 'memory alloc limit exceeded';
  return message.split('\n')[0] ?? '';
}
