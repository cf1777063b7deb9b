import type { LookupAddress } from 'node:dns';
import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import { plainAddress, specialUse } from '../values/addresses.ts';
import { type AllowList, isAllowed, plainHost } from './allow-list.ts';
import { EgressRefusedError } from './egress-refused.ts';

/** Resolves a host to all its addresses. The default is the system's resolver; tests pass their own. */
export type Resolve = (host: string) => Promise<LookupAddress[]>;

export interface Guard {
  /** Checks a host that is written as an address, and throws if it is not allowed. Accepts all host names. */
  checkLiteral(host: string): void;
  /**
   * Resolves a host and checks its addresses, for `net.connect` and everything built on it. The connection uses the
   * checked addresses.
   */
  lookup: LookupFunction;
  /** A guard that only allows what the operator has listed, and no other address, public or private. */
  listedOnly: Guard;
}

export function createGuard(allow: AllowList, resolve: Resolve = resolveWithSystem): Guard {
  const guard = guardOf(allow, resolve, false, () => listed);
  const listed: Guard = guardOf(allow, resolve, true, () => listed);
  return guard;
}

function resolveWithSystem(host: string): Promise<LookupAddress[]> {
  return dns.promises.lookup(host, { all: true, verbatim: true });
}

function guardOf(allow: AllowList, resolve: Resolve, listedOnly: boolean, listed: () => Guard): Guard {
  const check = (host: string, address: string) => {
    if (isAllowed(allow, host, address)) return;
    const reason = specialUse(address);
    if (reason) {
      throw new EgressRefusedError(
        host,
        address,
        `the address is ${reason}. To allow the host or its network, list it in SLUICE_EGRESS_ALLOW`,
      );
    }
    if (listedOnly) throw new EgressRefusedError(host, address, 'SLUICE_EGRESS_ALLOW does not list it');
  };
  return {
    get listedOnly() {
      return listed();
    },
    checkLiteral(host) {
      const address = plainAddress(host);
      if (address !== undefined) check(plainHost(host), address);
    },
    lookup(host, options, callback) {
      resolve(host).then(
        (addresses) => {
          try {
            const family = options.family === 4 || options.family === 6 ? options.family : 0;
            const wanted = addresses.filter((one) => family === 0 || one.family === family);
            if (wanted.length === 0) throw notFound(host);
            // One refused address refuses the host, because the connection may choose any of the addresses.
            for (const { address } of wanted) check(host, address);
            if (options.all) callback(null, wanted);
            else callback(null, (wanted[0] as LookupAddress).address, (wanted[0] as LookupAddress).family);
          } catch (error) {
            callback(error as Error, '', 0);
          }
        },
        (error) => callback(error as Error, '', 0),
      );
    },
  };
}

function notFound(host: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), {
    code: 'ENOTFOUND',
    syscall: 'getaddrinfo',
  });
}
