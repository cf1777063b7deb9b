import type { Socket } from 'node:net';
import type { ClientBase } from 'pg';

/** Closes a connection at once, even while it waits. Its query fails with `error`. */
export function abandonConnection(client: ClientBase, error: Error): void {
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy(error);
}
