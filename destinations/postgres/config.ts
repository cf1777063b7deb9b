import { z } from 'zod';
import { eventNames, listText, secret } from '../config.ts';

/** Postgres cuts off longer names, and would use another table. */
const LONGEST_NAME = 63;

export const postgresFields = z
  .object({
    user: secret(z.string()).describe('The user that logs in.'),
    password: secret(z.string()).describe('The password of the user.'),
    host: z.string().describe('The name or address of the server.'),
    database: z.string().describe('The database. It must exist.'),
    schema: z.string().default('public').describe('The schema. It must exist.'),
    table_name: z.string().default('events').describe('The table. It is created if it does not exist.'),
    port: z.number().default(5432).describe('The port of the server.'),
    has_self_signed_cert: z
      .boolean()
      .default(false)
      .describe('Whether to accept a certificate that no known authority has signed.'),
    ...eventNames,
  })
  .superRefine((config, context) => {
    const complain = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const needed = ['user', 'host', 'database', 'schema', 'table_name'] as const;
    const empty = needed.filter((key) => config[key].trim() === '');
    if (empty.length > 0) complain(empty[0] as string, `The following inputs are empty: ${listText(empty)}`);
    for (const key of ['schema', 'table_name', 'database'] as const) {
      if (Buffer.byteLength(config[key]) > LONGEST_NAME || config[key].includes('\0'))
        complain(key, `${key} must have at most ${LONGEST_NAME} bytes and no NUL`);
    }
    // A host that begins with a slash would be a socket of this machine.
    if (/[\s/@?#,]/.test(config.host.trim()) || config.host.includes('\0'))
      complain('host', 'host must be the name or the address of a host, nothing else');
    if (config.port < 1 || config.port > 65_535)
      complain('port', `port must be between 1 and 65535, not ${config.port}`);
  });

export type PostgresConfig = z.output<typeof postgresFields>;
