import { createHash } from 'node:crypto';

const SEALED = /^(\d{1,20})\.([0-9a-f]{32})\.((?:[01]{256})+)$/;
const BLOCK_BYTES = 32;

const sha256 = (...parts: (string | Buffer)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/**
 * Opens what the function `tell` of the database has sealed for a channel. Undefined: somebody else wrote it, or with another
 * secret. Everybody with a SQL login can send notifications.
 */
export function openNotice(secret: Buffer, channel: string, payload: string): string | undefined {
  const [, number, tag, bits] = SEALED.exec(payload) ?? [];
  if (number === undefined || tag === undefined || bits === undefined) return undefined;
  const plain = Buffer.alloc(bits.length / 8);
  for (let at = 0; at < plain.length; at += BLOCK_BYTES) {
    const pad = sha256(secret, 'pad ', Buffer.from(tag, 'hex'), String(at / BLOCK_BYTES + 1));
    for (let index = 0; index < BLOCK_BYTES; index += 1) {
      const from = (at + index) * 8;
      plain[at + index] = Number.parseInt(bits.slice(from, from + 8), 2) ^ (pad[index] as number);
    }
  }
  const zero = plain.indexOf(0);
  const end = zero === -1 ? plain.length : zero;
  if (plain.subarray(end).some((one) => one !== 0)) return undefined;
  const message = plain.subarray(0, end).toString();
  const proof = sha256(secret, `tag ${number} ${channel} ${message}`).subarray(0, 16).toString('hex');
  return proof === tag ? message : undefined;
}
