import { readFileSync } from 'node:fs';
import type { TLSConfig } from '@temporalio/client';
import type { Config } from '../config.ts';

export type TemporalSettings = Pick<
  Config,
  | 'TEMPORAL_ADDRESS'
  | 'TEMPORAL_NAMESPACE'
  | 'TEMPORAL_API_KEY'
  | 'TEMPORAL_TLS'
  | 'TEMPORAL_TLS_CERT'
  | 'TEMPORAL_TLS_KEY'
  | 'TEMPORAL_TLS_CA'
>;

export interface ConnectionSettings {
  address: string;
  tls?: TLSConfig | boolean;
  apiKey?: string;
}

function readPem(file: string, variable: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Error(`${variable}: the file ${file} cannot be read (${(error as Error).message}).`);
  }
}

/** Returns how to connect to Temporal. The client and the worker use the same settings. */
export function connectionSettings(settings: TemporalSettings): ConnectionSettings {
  const {
    TEMPORAL_TLS_CERT: cert,
    TEMPORAL_TLS_KEY: key,
    TEMPORAL_TLS_CA: ca,
    TEMPORAL_API_KEY: apiKey,
  } = settings;
  if (!settings.TEMPORAL_ADDRESS) {
    throw new Error('TEMPORAL_ADDRESS is not set. `npm start` runs a Temporal of its own; otherwise set it.');
  }
  if (Boolean(cert) !== Boolean(key)) {
    throw new Error('TEMPORAL_TLS_CERT and TEMPORAL_TLS_KEY go together; only one of them is set.');
  }
  const tls: TLSConfig = {
    ...(cert && key
      ? { clientCertPair: { crt: readPem(cert, 'TEMPORAL_TLS_CERT'), key: readPem(key, 'TEMPORAL_TLS_KEY') } }
      : {}),
    ...(ca ? { serverRootCACertificate: readPem(ca, 'TEMPORAL_TLS_CA') } : {}),
  };
  const wanted = settings.TEMPORAL_TLS || Boolean(apiKey) || Object.keys(tls).length > 0;
  return {
    address: settings.TEMPORAL_ADDRESS,
    ...(wanted ? { tls: Object.keys(tls).length > 0 ? tls : true } : {}),
    ...(apiKey ? { apiKey } : {}),
  };
}
