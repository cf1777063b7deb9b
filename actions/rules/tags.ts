/** Writes tags as they are compared: without spaces around them, in lower case, and each once. */
export const tidyTags = (tags: readonly string[]): string[] => [
  ...new Set(tags.map((tag) => tag.trim().toLowerCase()).filter((tag) => tag !== '')),
];
