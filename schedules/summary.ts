// Summaries of workflows, as the lists and pages of the Temporal UI show them.

/** How many bytes of a summary the Temporal UI accepts. */
const LONGEST = 200;

/**
 * Removes everything from a name that the Temporal UI, which renders Markdown, could show as a link, an image or
 * markup.
 */
export const plain = (name: string): string => name.replaceAll(/:\/\/|[\p{Cc}`*~<>[\]|\\\s]+/gu, ' ').trim();

/** Cuts off what is too long, and no character in half. */
export function shortened(text: string, bytes = LONGEST): string {
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytes), { stream: true });
}
