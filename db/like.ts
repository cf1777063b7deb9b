/** Returns a pattern for LIKE that matches this text only. */
export const literalPattern = (text: string) => text.replace(/[\\%_]/g, '\\$&');

/** Returns a pattern for LIKE that matches whatever begins with this text. */
export const prefixPattern = (text: string) => `${literalPattern(text)}%`;

/** Returns a pattern for LIKE that matches whatever has this text in it. */
export const containsPattern = (text: string) => `%${literalPattern(text)}%`;
