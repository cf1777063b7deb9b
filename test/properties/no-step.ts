import type { ActionStep } from '../../properties/index.ts';

/** A step that every event takes. */
export const NO_STEP: ActionStep = {
  event: null,
  url: null,
  urlMatching: null,
  selector: null,
  tagName: null,
  href: null,
  hrefMatching: null,
  text: null,
  textMatching: null,
  properties: null,
};
