// Texts on a terminal. Tenants choose names and cause messages, and an operator must not see what they did not do.

/** What moves a cursor, changes colors, ends a line or turns the direction of writing. */
const COMMANDS = /\p{Cc}|\p{Cf}|\u2028|\u2029/gu;

/** The text in one line, with a space in the place of each such character. */
export const inert = (text: string): string => text.replace(COMMANDS, ' ');

/** JSON that says the same. Its own line ends stay. */
export const inertJson = (json: string): string =>
  json.replace(COMMANDS, (one) =>
    one === '\n'
      ? one
      : one
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  );
