import { build, type Expr } from '../hog/ast/index.ts';
import { allowedSize, type PatternBudget } from '../hog/patterns/index.ts';
import { selectorPattern, selectorTest, tagNameTest } from './elements.ts';
import { at } from './errors.ts';
import { type ExpressionOptions, filterExpression } from './expression.ts';
import type { FilterGroup } from './filter.ts';
import { conjunction, disjunction, TRUE } from './nodes.ts';
import { compileRegex, ofPattern } from './regex.ts';

export type TextMatching = 'exact' | 'contains' | 'regex';

/** One way in which an event can match an action. A null field matches any event. */
export interface ActionStep {
  event: string | null;
  url: string | null;
  urlMatching: TextMatching | null;
  selector: string | null;
  tagName: string | null;
  href: string | null;
  hrefMatching: TextMatching | null;
  text: string | null;
  textMatching: TextMatching | null;
  properties: FilterGroup | null;
}

const AUTOCAPTURE = '$autocapture';

/**
 * Builds the condition of an action: an event matches if it matches any step. An action without steps matches every
 * event.
 */
export function actionExpression(steps: readonly ActionStep[], options: ExpressionOptions): Expr {
  return disjunction(steps.map((step, index) => conjunction(stepTests(step, `steps.${index}`, options))));
}

/**
 * Checks the regular expressions, the selector and the tag name of a step, also those that its event makes no use of, and
 * counts them. Throws a FilterError whose path begins with `path`.
 */
export function checkStep(step: ActionStep, path: string, patterns: PatternBudget): void {
  const spend = (pattern: string) => ofPattern(() => patterns.spend(allowedSize(pattern)));
  for (const [field, value, matching] of [
    ['url', step.url, step.urlMatching],
    ['href', step.href, step.hrefMatching],
    ['text', step.text, step.textMatching],
  ] as const) {
    if (value === null || matching !== 'regex') continue;
    at(`${path}.${field}`, () => {
      spend(value);
      compileRegex(value);
    });
  }
  const { selector, tagName } = step;
  if (selector !== null) {
    at(`${path}.selector`, () => {
      const pattern = selectorPattern(selector);
      spend(pattern);
      compileRegex(pattern);
    });
  }
  if (tagName !== null) at(`${path}.tag_name`, () => tagNameTest(tagName));
}

function stepTests(step: ActionStep, path: string, options: ExpressionOptions): Expr[] {
  const tests: Expr[] = [];
  if (step.event) tests.push(build.compare('==', build.field('event'), build.constant(step.event)));
  if (step.event === AUTOCAPTURE) tests.push(...elementTests(step, path));
  if (step.url) {
    const url = build.field('properties', '$current_url');
    const { url: value, urlMatching } = step;
    tests.push(at(`${path}.url`, () => textTest(url, value, urlMatching ?? 'contains', 'like')));
  }
  if (step.properties && step.properties.values.length > 0) {
    tests.push(filterExpression(step.properties, options));
  }
  return tests.length > 0 ? tests : [TRUE];
}

function elementTests(step: ActionStep, path: string): Expr[] {
  const { selector, tagName, href, hrefMatching, text, textMatching } = step;
  const tests: Expr[] = [];
  if (selector) tests.push(at(`${path}.selector`, () => selectorTest(selector)));
  if (tagName !== null) tests.push(at(`${path}.tag_name`, () => tagNameTest(tagName)));
  if (href !== null) {
    const found = build.field('elements_chain_href');
    tests.push(at(`${path}.href`, () => textTest(found, href, hrefMatching ?? 'exact', 'ilike')));
  }
  if (text !== null) {
    const test = at(`${path}.text`, () => textTest(build.field('x'), text, textMatching ?? 'exact', 'ilike'));
    tests.push(build.call('arrayExists', build.lambda(['x'], test), build.field('elements_chain_texts')));
  }
  return tests;
}

function textTest(expr: Expr, value: string, matching: TextMatching, contains: 'like' | 'ilike'): Expr {
  if (matching === 'exact') return build.compare('==', expr, build.constant(value));
  if (matching === 'contains') return build.compare(contains, expr, build.constant(`%${value}%`));
  compileRegex(value);
  return build.compare('=~', expr, build.constant(value));
}
