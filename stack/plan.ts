import path from 'node:path';
import type { Config } from '../config.ts';
import { freePort, requireFreePort } from './preflight.ts';
import { StackProblem } from './problem.ts';

/** What this start runs itself, and where everything is. A port of 0 in the settings is already replaced by a free port. */
export interface Plan {
  dataDir: string;
  cacheDir: string;
  logsDir: string;
  ownPostgres: boolean;
  ownTemporal: boolean;
  ports: Ports;
  /** URL of the API for users. */
  baseUrl: string;
  /** URL of the API on this machine. */
  localUrl: string;
  temporalAddress: string;
  temporalUiUrl: string | null;
}

interface Ports {
  api: number;
  postgres: number;
  temporal: number;
  temporalUi: number;
  /** 0 when metrics are off. */
  apiMetrics: number;
  workerMetrics: number;
}

const isAnyAddress = (host: string) => host === '0.0.0.0' || host === '::';

export async function makePlan(config: Config, env: NodeJS.ProcessEnv): Promise<Plan> {
  const orFree = async (port: number, host = '127.0.0.1') => (port === 0 ? freePort(host) : port);
  const api = await orFree(config.PORT, config.SLUICE_HOST);
  const temporal = await orFree(config.SLUICE_TEMPORAL_PORT);
  const temporalUi = await orFree(config.SLUICE_TEMPORAL_UI_PORT);
  const ownTemporal = config.TEMPORAL_ADDRESS === undefined;
  const metrics = config.SLUICE_METRICS_PORT;
  return {
    dataDir: config.SLUICE_DATA_DIR,
    cacheDir: config.SLUICE_CACHE_DIR,
    logsDir: path.join(config.SLUICE_DATA_DIR, 'logs'),
    ownPostgres: config.DATABASE_URL === undefined,
    ownTemporal,
    ports: {
      api,
      postgres: await orFree(config.SLUICE_POSTGRES_PORT),
      temporal,
      temporalUi,
      apiMetrics: metrics,
      workerMetrics: metrics === 0 ? 0 : metrics + 1,
    },
    baseUrl: env.SLUICE_PUBLIC_URL ? config.SLUICE_PUBLIC_URL : `http://localhost:${api}`,
    localUrl: `http://${localHost(config.SLUICE_HOST)}:${api}`,
    temporalAddress: config.TEMPORAL_ADDRESS ?? `127.0.0.1:${temporal}`,
    temporalUiUrl: config.TEMPORAL_UI_URL ?? (ownTemporal ? `http://localhost:${temporalUi}` : null),
  };
}

function localHost(host: string): string {
  if (isAnyAddress(host)) return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}

/** Throws a StackProblem if a port is not free, or if two settings have the same port. Runs before anything starts. */
export async function requirePorts(plan: Plan, host: string): Promise<void> {
  const { ports } = plan;
  const wanted: { port: number; setting: string; host: string }[] = [
    { port: ports.api, setting: 'PORT', host },
    ...(plan.ownPostgres
      ? [{ port: ports.postgres, setting: 'SLUICE_POSTGRES_PORT', host: '127.0.0.1' }]
      : []),
    ...(plan.ownTemporal
      ? [
          { port: ports.temporal, setting: 'SLUICE_TEMPORAL_PORT', host: '127.0.0.1' },
          { port: ports.temporalUi, setting: 'SLUICE_TEMPORAL_UI_PORT', host: '127.0.0.1' },
        ]
      : []),
    ...(ports.apiMetrics > 0
      ? [
          { port: ports.apiMetrics, setting: 'SLUICE_METRICS_PORT', host },
          { port: ports.workerMetrics, setting: 'SLUICE_METRICS_PORT + 1', host },
        ]
      : []),
  ];
  const users = new Map<number, string>();
  for (const { port, setting } of wanted) {
    const other = users.get(port);
    if (other !== undefined) {
      throw new StackProblem(
        `Both ${other} and ${setting} are set to port ${port}; set one of them to another port.`,
      );
    }
    users.set(port, setting);
  }
  for (const one of wanted) await requireFreePort(one.port, one.setting, one.host);
}
