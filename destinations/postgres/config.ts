import { z } from 'zod';
import { eventNames, listText, secret } from '../config.ts';

/** Postgres cuts off longer names, and would use another table. */
const LONGEST_NAME = 63;

export const postgresFields = z
  .object({
    user: secret(z.string()).describe('Name of the Postgres user.'),
    password: secret(z.string(), { mayBeBlank: true }).describe(
      'Password of the Postgres user. Blank for a server that asks for none.',
    ),
    host: z.string().describe('Host name or IP address of the server.'),
    database: z.string().describe('Name of the database. It must exist.'),
    schema: z.string().default('public').describe('Name of the schema. It must exist.'),
    table_name: z
      .string()
      .default('events')
      .describe('Name of the table. The export creates it if it does not exist.'),
    port: z.number().default(5432).describe('Port of the server.'),
    has_self_signed_cert: z
      .boolean()
      .default(false)
      .describe('Accept a server certificate that no known certificate authority signed.'),
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
