/** What a project and its actions may have at most. */
export const ACTION_LIMITS = {
  /** Actions of a project that are not deleted. */
  actions: 1_000,
  /** Steps of an action. */
  steps: 100,
  /** Bytes of all steps of an action as JSON. */
  bytes: 100_000,
  /** Tags of an action, and characters of each. */
  tags: 100,
  tagCharacters: 255,
} as const;
