import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';

const ITERATIONS = 4_096;
const BYTES = 32;

/**
 * Returns what Postgres stores for a password (RFC 5803). A statement that sets a password contains this instead of the
 * password, so that neither the log of Postgres nor whoever reads the statement learns the password.
 */
export function scramVerifier(password: string, salt: Buffer): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, BYTES, 'sha256');
  const keyed = (text: string) => createHmac('sha256', salted).update(text).digest();
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64');
  const server = keyed('Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${stored}:${server}`;
}
