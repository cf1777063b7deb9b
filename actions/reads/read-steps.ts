import { type ActionStep, FilterBudget, readFilters } from '../../properties/index.ts';
import type { StepDocument } from '../rows/actions.ts';

/**
 * Parses the steps of an action, and counts what their properties cost together. Throws a FilterError whose path begins
 * with `steps`.
 */
export function readSteps(documents: readonly StepDocument[], budget = new FilterBudget()): ActionStep[] {
  return documents.map((document, index) => ({
    event: document.event,
    url: document.url,
    urlMatching: document.url_matching,
    selector: document.selector,
    tagName: document.tag_name,
    href: document.href,
    hrefMatching: document.href_matching,
    text: document.text,
    textMatching: document.text_matching,
    properties:
      document.properties === null
        ? null
        : readFilters(document.properties, { path: `steps.${index}.properties`, budget, strict: true }),
  }));
}
