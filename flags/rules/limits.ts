/** What a project and its flags may have at most. */
export const FLAG_LIMITS = {
  /** Bytes of the filters of a flag as JSON. */
  bytes: 500_000,
  /** Characters of a key, and of the key of a variant. */
  keyCharacters: 400,
  nameCharacters: 10_000,
  /** Condition sets of a flag. */
  conditions: 1_000,
  variants: 100,
  tags: 100,
  tagCharacters: 255,
  /** Contexts of a flag. */
  contexts: 100,
  /** Flags that one request deletes, or gives other tags. */
  changedAtOnce: 1_000,
  /** Scheduled changes of a project that are still to come. */
  plannedChanges: 1_000,
  /** Bytes of their payloads as JSON, together. */
  plannedBytes: 16 * 1024 * 1024,
  /** Values by hand of a flag, and of all flags of a project. Definitions carry all of them. */
  overrides: 1_000,
  overridesOfProject: 20_000,
  /** Early access features of a project, and bytes of the payload of one as JSON. */
  features: 500,
  featurePayloadBytes: 16_000,
} as const;
