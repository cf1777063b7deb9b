import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * In each turn of the event loop, a listening socket accepts a single connection. When hundreds come at the same moment,
 * a new one would wait behind all of them, so several sockets listen at the same address and the system spreads the
 * connections over them.
 */
const MORE_SOCKETS = 7;

interface Where {
  host: string;
  port: number;
}

/** Several sockets may share an address only if all of them say so. Then nothing tells that others listen there. */
async function refuseIfTaken({ host, port }: Where): Promise<void> {
  const server = net.createServer().listen({ host, port });
  await once(server, 'listening');
  server.close();
  await once(server, 'close');
}

/** Listens for requests. Returns what stops listening for new connections, and resolves when all are closed. */
export async function listen(
  app: FastifyInstance,
  where: Where,
  more = process.platform === 'linux' ? MORE_SOCKETS : 0,
): Promise<() => Promise<void>> {
  if (more > 0) await refuseIfTaken(where);
  // Fastify hands its options on, whatever its types say.
  await app.listen({ ...where, reusePort: more > 0 } as Where);
  const accept = (socket: Socket) => app.server.emit('connection', socket);
  const servers: net.Server[] = [];
  for (const { address: host, port } of app.addresses() as AddressInfo[]) {
    for (let n = 0; n < more; n += 1) {
      const server = net.createServer({ allowHalfOpen: true, noDelay: true }, accept);
      servers.push(server.listen({ host, port, reusePort: true }));
      await once(server, 'listening');
    }
  }
  return async () => {
    const closed = servers.map((server) => once(server, 'close'));
    for (const server of servers) server.close();
    await app.close();
    await Promise.all(closed);
  };
}
