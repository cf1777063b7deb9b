/** What an annotation is about. */
export const ANNOTATION_SCOPES = [
  'dashboard_item',
  'dashboard',
  'project',
  'organization',
  'recording',
] as const;
export type AnnotationScope = (typeof ANNOTATION_SCOPES)[number];

/** Who makes an annotation: a user, or a bot of GitHub. */
export const CREATION_TYPES = ['USR', 'GIT'] as const;
export type CreationType = (typeof CREATION_TYPES)[number];

export const ANNOTATION_LIMITS = {
  /** Characters of the text. */
  content: 8_192,
  emoji: 16,
  /** Annotations of a project, deleted ones included. They are searched without an index. */
  perProject: 10_000,
  /** Those of them that all projects of the organization show. So a member of one project cannot flood the lists of the others. */
  shared: 1_000,
} as const;
