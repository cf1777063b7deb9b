import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll } from '@jest/globals';
import type { InjectOptions, LightMyRequestResponse } from 'fastify';
import { type ActionCompiler, createActionCompiler } from '../../actions/compiler.ts';
import { buildApp } from '../../api/app.ts';
import type { ApiDependencies, App } from '../../api/dependencies.ts';
import { integrationsOf } from '../../api/functions/dependencies.ts';
import { answersInBackground } from '../../api/queries/background.ts';
import { queryDependencies } from '../../api/queries/query.ts';
import { ROUTES, type Routes } from '../../api/routes.ts';
import { createDefinitions, type Definitions } from '../../capture/definitions/definitions.ts';
import { createIngest, type Ingest } from '../../capture/ingest.ts';
import { createLargeBodies, type LargeBodies } from '../../capture/large/bodies.ts';
import { type Config, loadConfig } from '../../config.ts';
import { createListener, type Listener } from '../../db/listen.ts';
import { insertMembership } from '../../db/memberships.ts';
import { type Pool, transaction } from '../../db/pool.ts';
import { Turns } from '../../db/turns.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { createEgress, type Egress } from '../../egress/egress.ts';
import { createFunctionCompiler, type FunctionCompiler } from '../../functions/compiler.ts';
import { createFollower } from '../../functions/dispatch/follower.ts';
import { createRunner, type Runner } from '../../functions/runner.ts';
import { createTransformer, type Transformer } from '../../functions/transform/transformer.ts';
import { createCompiler, type ModelCompiler } from '../../models/index.ts';
import { PRODUCTS } from '../../products.ts';
import { type BackgroundQueries, createBackgroundQueries } from '../../queries/background/runner.ts';
import { createQueryCompiler, type QueryCompiler } from '../../queries/compiler.ts';
import { ResultPlaces } from '../../queries/result-places.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { type Keyring, parseKeyring } from '../../secrets/envelope.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { createRegistry, type Registry } from '../../telemetry/metrics.ts';
import type { Level } from '../../tenancy/levels.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { mergeHook } from '../../tenancy/product.ts';
import { createUser } from '../../tenancy/users.ts';
import { databaseForFile } from './database.ts';
import { PATIENCE } from './eventually.ts';
import { allocateNamespace } from './temporal.ts';

/** Somebody with an organization, a project and a key. */
export interface Tenant {
  userId: number;
  userUuid: string;
  email: string;
  organizationId: string;
  projectId: number;
  projectToken: string;
  key: string;
  keyId: string;
}

export interface TestApi {
  app: App;
  products: ApiDependencies['products'];
  pool: Pool;
  reader: Pool;
  listener: Listener;
  ingest: Ingest;
  /** Writes when it is read, so that what it does stands in no test about something else. */
  definitions: Definitions;
  registry: Registry;
  config: Config;
  schedules: Schedules;
  compiler: ModelCompiler;
  queryCompiler: QueryCompiler;
  /** Looks for queries only when one is begun. */
  background: BackgroundQueries;
  actionCompiler: ActionCompiler;
  functionCompiler: FunctionCompiler;
  functionRunner: Runner;
  egress: Egress;
  keyring: Keyring | undefined;
  /** A request with the tenant's key, or with none. */
  request(
    tenant: Tenant | string | null,
    method: string,
    url: string,
    payload?: unknown,
    headers?: Record<string, string>,
  ): Promise<LightMyRequestResponse>;
  transformer: Transformer;
  largeBodies: LargeBodies;
  /** The same API with some of its dependencies exchanged; the test closes it. */
  rebuild(changes: Partial<ApiDependencies>): Promise<App>;
  createTenant(name: string, options?: { scopes?: string[] }): Promise<Tenant>;
  /** Somebody new with a key, as a member of the tenant's organization too. */
  createMember(of: Tenant, name: string, level: Level): Promise<Tenant>;
  /** A further key of the tenant. */
  createKey(of: Tenant, input?: KeyInput): Promise<{ id: string; value: string }>;
}

export interface KeyInput {
  scopes?: string[];
  scopedTeams?: number[];
  scopedOrganizations?: string[];
  expiresAt?: string;
}

const TEST_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
let serial = 0;

export async function createTenant(pool: Pool, name: string, scopes: string[] = ['*']): Promise<Tenant> {
  serial += 1;
  const email = `${name.replaceAll(/\W+/g, '-').toLowerCase()}-${process.pid}-${serial}@example.com`;
  return transaction(pool, async (client) => {
    const user = await createUser(client, { email, firstName: name });
    if (!user) throw new Error(`the address ${email} is taken`);
    const { organizationId, project } = await createOrganization(client, { name, userId: user.id });
    const key = await issuePersonalApiKey(client, { userId: user.id, label: name, scopes });
    return {
      userId: user.id,
      userUuid: user.uuid,
      email,
      organizationId,
      projectId: project.id,
      projectToken: project.api_token,
      key: key.value,
      keyId: key.row.id,
    };
  });
}

/** Tenants for the tests of one file, by their names. They can be used as soon as the tests begin. */
export function tenantsForFile<N extends string>(api: TestApi, ...names: N[]): Record<N, Tenant> {
  const tenants = Object.fromEntries(names.map((name) => [name, {}])) as Record<N, Tenant>;
  beforeAll(async () => {
    for (const name of names) Object.assign(tenants[name], await api.createTenant(name));
  });
  return tenants;
}

/** The API at an address, for clients in other processes, and what it answered them: `GET /path 200`. */
export function listenForFile(api: TestApi): { host: string; answers: string[] } {
  const heard = { host: '', answers: [] as string[] };
  beforeAll(async () => {
    heard.host = await api.app.listen({ port: 0, host: '127.0.0.1' });
    api.app.server.on('request', ({ method, url = '' }, response: ServerResponse) => {
      response.on('finish', () => {
        heard.answers.push(`${method} ${url.split('?')[0]} ${response.statusCode}`);
      });
    });
  });
  return heard;
}

/** The whole API over a database of its own, for the tests of one file. */
export function apiForFile(
  env: Record<string, string> = {},
  options: Partial<
    Pick<ApiDependencies, 'products' | 'ingest' | 'transform' | 'bodyIdleMilliseconds' | 'liveBounds'>
  > = {},
  routes: Routes = ROUTES,
): TestApi {
  // Hooks run in the order of their definition: the API is closed before its database goes.
  afterAll(async () => {
    await api.app?.close();
    await api.background?.close();
    await api.ingest?.close();
    await api.definitions?.close();
    await api.transformer?.close();
    await api.largeBodies?.close();
    await api.listener?.close();
    await api.schedules?.close();
    const { compiler, queryCompiler, actionCompiler, functionCompiler, functionRunner, egress } = api;
    await Promise.all(
      [compiler, queryCompiler, actionCompiler, functionCompiler, functionRunner, egress].map((one) =>
        one?.close(),
      ),
    );
  });
  const database = databaseForFile();
  const api = {
    createTenant: (name: string, options = {}) =>
      createTenant(database.pool, name, (options as { scopes?: string[] }).scopes),
    async createMember(of, name, level) {
      const tenant = await createTenant(database.pool, name);
      await insertMembership(database.pool, {
        id: uuidv7(),
        organization_id: of.organizationId,
        user_id: tenant.userId,
        level,
      });
      return tenant;
    },
    async createKey(of, input = {}) {
      const { row, value } = await transaction(database.pool, (client) =>
        issuePersonalApiKey(client, { userId: of.userId, label: 'further key', scopes: ['*'], ...input }),
      );
      return { id: row.id, value };
    },
  } as TestApi;
  beforeAll(async () => {
    const { address, namespace } = allocateNamespace();
    api.config = loadConfig({
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
      SLUICE_PUBLIC_URL: 'https://sluice.test',
      SLUICE_ENCRYPTION_KEYS: TEST_KEYS,
      TEMPORAL_UI_URL: 'https://temporal.test',
      ...env,
    });
    const logger = createLogger({ name: 'test', level: 'silent' });
    api.products = options.products ?? PRODUCTS;
    api.pool = database.pool;
    api.reader = database.reader;
    api.schedules = createSchedules(api.config, logger);
    api.compiler = createCompiler({ threads: 1, timeoutMs: PATIENCE });
    api.queryCompiler = createQueryCompiler({ threads: 1, timeoutMs: PATIENCE });
    api.actionCompiler = createActionCompiler({ threads: 1, timeoutMs: PATIENCE });
    api.functionCompiler = createFunctionCompiler({ threads: 1, timeoutMs: PATIENCE });
    api.functionRunner = createRunner({ threads: 2 });
    api.egress = createEgress({ allow: api.config.SLUICE_EGRESS_ALLOW });
    const keys = api.config.SLUICE_ENCRYPTION_KEYS;
    api.keyring = keys ? parseKeyring(keys) : undefined;
    api.registry = createRegistry('test');
    api.listener = createListener({ url: database.url, name: 'test-listener' });
    api.definitions = createDefinitions({ pool: api.pool, flushEvery: 3_600_000 });
    api.ingest = createIngest({
      pool: api.pool,
      registry: api.registry,
      personsMerged: mergeHook(api.products),
      follower: createFollower({ pool: api.pool, logger }),
      names: api.definitions,
    });
    api.transformer = createTransformer({
      ...{
        pool: api.pool,
        logger,
        registry: api.registry,
        keyring: api.keyring,
        compiler: api.functionCompiler,
      },
      integrations: integrationsOf({ pool: api.pool, keyring: api.keyring, egress: api.egress }),
      site: api.config.SLUICE_PUBLIC_URL,
    });
    api.largeBodies = createLargeBodies();
    const compiling = new Turns({ atOnce: 2 });
    api.background = createBackgroundQueries({
      ...{ pool: api.pool, logger, atOnce: 2 },
      answer: answersInBackground(queryDependencies({ ...api, compiling }), api.reader),
    });
    const dependencies: ApiDependencies = {
      config: api.config,
      products: api.products,
      pool: api.pool,
      readingPool: api.pool,
      lanePool: api.pool,
      reader: api.reader,
      resultPool: api.reader,
      resultPlaces: new ResultPlaces({ atOnce: 2, perAsker: 1 }),
      listener: api.listener,
      ingest: api.ingest,
      definitions: api.definitions,
      transform: api.transformer.transform,
      // A test with a transformation of its own sees every event, whatever the size of its body.
      largeBodies: options.transform ? undefined : api.largeBodies,
      schedules: api.schedules,
      compiler: api.compiler,
      queryCompiler: api.queryCompiler,
      background: api.background,
      actionCompiler: api.actionCompiler,
      functionCompiler: api.functionCompiler,
      functionRunner: api.functionRunner,
      compiling,
      egress: api.egress,
      keyring: api.keyring,
      logger,
      registry: api.registry,
      isPrepared: () => true,
      isDraining: () => false,
      ...options,
    };
    api.rebuild = async (changes) => {
      const app = await buildApp(
        { ...dependencies, registry: createRegistry('rebuilt'), ...changes },
        routes,
      );
      await app.ready();
      return app;
    };
    api.app = await buildApp(dependencies, routes);
    await api.app.ready();
  });
  api.request = async (tenant, method, url, payload, headers = {}) => {
    const key = typeof tenant === 'string' ? tenant : tenant?.key;
    return api.app.inject({
      method: method as NonNullable<InjectOptions['method']>,
      url,
      headers: { ...(key ? { authorization: `Bearer ${key}` } : {}), ...headers },
      ...(payload === undefined ? {} : { payload: payload as NonNullable<InjectOptions['payload']> }),
    });
  };
  return api;
}
