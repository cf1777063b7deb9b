export const STAGES = ['draft', 'concept', 'alpha', 'beta', 'general-availability', 'archived'] as const;
export type Stage = (typeof STAGES)[number];

/** The stages that clients may ask for. A draft is nobody's business, and what is archived is over. */
export const PUBLIC_STAGES = ['concept', 'alpha', 'beta', 'general-availability'] as const;
export const DEFAULT_PUBLIC_STAGE = 'beta';

/** Whether who enrols gets the feature. For a concept, people only say that they would want it. */
export const opensFlag = (stage: Stage): boolean =>
  stage === 'alpha' || stage === 'beta' || stage === 'general-availability';

/** The filters of a flag that a feature makes: for nobody but those who enrol. */
export const filtersOfFeature = (stage: Stage) => ({
  groups: [{ properties: [], rollout_percentage: 0 }],
  ...enrollment(stage),
});

/** What of the filters of its flag follows from the stage. */
export const enrollment = (stage: Stage) => ({ feature_enrollment: opensFlag(stage) ? true : null });

const LONGEST = 200;

/** The key of the flag of a feature, made of its name. Empty: the name has nothing that a key may have. */
export const keyOfName = (name: string): string =>
  name
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, LONGEST);
