import type { IncomingMessage } from 'node:http';
import cors, { type FastifyCorsOptions } from '@fastify/cors';
import helmet from '@fastify/helmet';
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
  LogController,
} from 'fastify';
import { serializerCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod';
import { createWarnings } from '../capture/warnings.ts';
import type { Config } from '../config.ts';
import { Turns } from '../db/turns.ts';
import { uuidv7 } from '../db/uuid.ts';
import { allScopes } from '../tenancy/scopes.ts';
import { createAccessControl } from './access.ts';
import { acceptBodies } from './bodies.ts';
import type { ApiDependencies, App } from './dependencies.ts';
import { errors, refuseBadHttp, sendError, toApiError } from './errors.ts';
import { LiveEvents } from './events/live/live-events.ts';
import { addressOf, letTakeTurns } from './fair-starts.ts';
import { createFlags, notesCalls } from './flags/dependencies.ts';
import { frontPageRoutes } from './front-page.ts';
import { healthRoutes } from './health.ts';
import { createRequestDurations, measureRequests } from './http-metrics.ts';
import { KnownKeys } from './known-keys.ts';
import { writeListsInPieces } from './list-answers.ts';
import { answerUnknownPaths, type KnownPaths, knowPaths } from './method-not-allowed.ts';
import { describeApi, serveDocumentation } from './openapi.ts';
import { DirectRoutes, goDirectly } from './public/direct.ts';
import { openLane } from './public/lane.ts';
import { refuseUnknownParameters } from './query-parameters.ts';
import { createRateLimit } from './rate-limit.ts';
import { ROUTES, type Routes } from './routes.ts';
import { boundSockets } from './sockets.ts';
import { createOfferedSurveys } from './surveys/offered.ts';

/** How many requests of one sender wait until some of its others are answered. */
const REQUESTS_WAITING = 500;
/** Milliseconds that such a request waits. */
const REQUEST_PATIENCE = 20_000;
const MANAGEMENT_BODY_LIMIT = 1024 * 1024;
/** How long a client may take to send a request. */
const REQUEST_MILLISECONDS = 60_000;
/** How long it may take for the headers of a request, and how often this is checked. */
const HEADERS_MILLISECONDS = 15_000;
const CHECK_MILLISECONDS = 5_000;
/** `environments` is an older name of `projects`. A request line may contain a whole URL. */
const ENVIRONMENTS = /^(?:https?:\/\/[^/?#]*)?\/api\/environments(?=\/|\?|$)/i;
/** Older paths without a project are those of the project that `token` names, or of the current one. */
const WITHOUT_PROJECT =
  /^(?:https?:\/\/[^/?#]*)?\/api\/(feature_flag|cohort)(?=\/|\?|$)(?!\/local_evaluation(?:\/|\?|$))/i;
/** Statuses with which a body can be refused before its sender is known. */
const ABOUT_BODY = new Set([400, 413, 415]);
/** Tells browsers to come back with TLS only, for a year. */
const HSTS = 'max-age=31536000; includeSubDomains';
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

function requestId(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : uuidv7();
}

/** Builds the HTTP server with all its routes, without listening. */
export async function buildApp(deps: ApiDependencies, routes: Routes = ROUTES): Promise<App> {
  const { config } = deps;
  const proxies = config.SLUICE_TRUST_PROXY.split(',').map((one) => one.trim());
  const app = Fastify({
    loggerInstance: deps.logger as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MANAGEMENT_BODY_LIMIT,
    genReqId: requestId,
    trustProxy: config.SLUICE_TRUST_PROXY === '' ? false : proxies,
    // The router accepts a parameter of any length. Node limits the request line.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 65_536 },
    requestTimeout: REQUEST_MILLISECONDS,
    http: { headersTimeout: HEADERS_MILLISECONDS, connectionsCheckingInterval: CHECK_MILLISECONDS },
    // While the process stops, it answers requests on open connections. /_readyz tells balancers to go elsewhere.
    return503OnClosing: false,
    rewriteUrl: (request) =>
      (request.url ?? '/')
        .replace(ENVIRONMENTS, '/api/projects')
        .replace(WITHOUT_PROJECT, (_path, thing: string) => `/api/projects/@current/${thing.toLowerCase()}s`),
    clientErrorHandler: refuseBadHttp,
    frameworkErrors: (error, request, reply) => {
      void sendError(
        error.code === 'FST_ERR_BAD_URL' ? errors.notFound('Endpoint not found.') : error,
        request,
        reply,
      );
    },
  }).withTypeProvider<ZodTypeProvider>();

  const direct = new DirectRoutes({ idOf: requestId, addressOf: addressOf(proxies), log: app.log });
  goDirectly(app.server, direct);
  letTakeTurns(app.server, proxies);
  const endIdle = boundSockets(app.server, {
    total: config.SLUICE_CONNECTIONS,
    perClient: config.SLUICE_CONNECTIONS_PER_ADDRESS,
    proxies,
  });
  // A connection on which nothing has come yet would keep the server open until its time is over.
  app.addHook('preClose', async () => endIdle());
  app.addHook('preClose', async () => direct.close());
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(sendError);
  // These two record every route that is added later, so they come first.
  const paths = knowPaths(app);
  await describeApi(app, { publicUrl: config.SLUICE_PUBLIC_URL, scopes: allScopes(deps.products) });
  const durations = createRequestDurations(deps.registry);
  const warnings = createWarnings({ queryable: deps.pool, logger: deps.logger });
  const flags = createFlags(deps);
  const surveys = createOfferedSurveys(deps);
  const live = new LiveEvents({ ...deps, bounds: deps.liveBounds });
  // Streams have no end of their own, so nothing waits for them.
  deps.stopping?.addEventListener('abort', () => live.close());
  app.addHook('preClose', () => live.close());
  app.addHook('onClose', async () => {
    surveys.close();
    await Promise.all([flags.close(), warnings.close()]);
  });

  // Public routes run none of the hooks of the management API. Those would cost more than storing an event.
  await app.register(async (site) => {
    const lane = openLane(site, {
      ...deps,
      direct,
      durations,
      wrongKeysPerMinute: config.SLUICE_REFUSALS_PER_MINUTE,
    });
    const ingest = notesCalls(deps.ingest, flags.calls);
    for (const addRoutes of routes.public)
      addRoutes(lane, { ...deps, ingest, warnings, flags, surveys, live });
  });
  await app.register(async (site) => {
    await prepareAnswers(site, config, paths);
    measureRequests(site, durations);
    answerUnknownPaths(site, paths);
    await serveDocumentation(site);
    frontPageRoutes(site.withTypeProvider<ZodTypeProvider>(), config.SLUICE_PUBLIC_URL);
    healthRoutes(site.withTypeProvider<ZodTypeProvider>(), { ...deps, flags });
    await site.register(async (scope) => {
      const management = scope.withTypeProvider<ZodTypeProvider>();
      await guardManagement(management, deps);
      for (const addRoutes of routes.management)
        addRoutes(management, { ...deps, warnings, flags, surveys, live });
    });
  });
  return app;
}

/** Adds the headers that every answer outside the public lane carries. */
async function prepareAnswers(site: FastifyInstance, config: Config, paths: KnownPaths): Promise<void> {
  // A trusted proxy says how each client connects. Without one, the public URL says it for all.
  const publicTls = config.SLUICE_TRUST_PROXY === '' && config.SLUICE_PUBLIC_URL.startsWith('https:');
  site.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    if (publicTls || request.protocol === 'https') reply.header('strict-transport-security', HSTS);
    done();
  });
  await site.register(helmet, {
    contentSecurityPolicy: false,
    // A browser that reached Sluice without TLS could not come back.
    strictTransportSecurity: false,
    crossOriginResourcePolicy: { policy: 'cross-origin' },
  });
  const shared = {
    origin: true,
    maxAge: 86_400,
    exposedHeaders: [
      'x-request-id',
      'retry-after',
      'x-ratelimit-limit',
      'x-ratelimit-remaining',
      'x-ratelimit-reset',
    ],
    strictPreflight: false,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  };
  // Old clients send cookies with whatever they ask for, and a browser shows them no answer without this header. Of a path
  // that nobody has it tells nothing. The management API takes no cookies.
  const delegator = (request: FastifyRequest, done: (error: null, options: FastifyCorsOptions) => void) => {
    const mayBeUnknown = request.is404 || request.method === 'OPTIONS';
    done(null, { ...shared, credentials: mayBeUnknown && !paths.knows(request) });
  };
  await site.register(cors, { delegator });
}

/** Sets up how the management API parses bodies, checks access and limits rates. */
async function guardManagement(
  management: App,
  { config, pool, isPrepared }: ApiDependencies,
): Promise<void> {
  await acceptBodies(management);
  writeListsInPieces(management);
  const rateLimit = createRateLimit(pool, {
    enabled: config.SLUICE_RATE_LIMIT,
    burst: config.SLUICE_RATE_LIMIT_BURST,
    sustained: config.SLUICE_RATE_LIMIT_SUSTAINED,
  });
  const access = createAccessControl({
    ...{ pool, rateLimit },
    knownKeys: new KnownKeys(config.SLUICE_REFUSALS_PER_MINUTE),
    turns: new Turns({
      atOnce: Number.POSITIVE_INFINITY,
      perAsker: config.SLUICE_REQUESTS_AT_ONCE,
      waitingPerAsker: REQUESTS_WAITING,
      patience: REQUEST_PATIENCE,
    }),
  });
  management.setErrorHandler((error, request, reply) => {
    const aboutBody = ABOUT_BODY.has(toApiError(error, request).status) && access.isStranger(request);
    return sendError(aboutBody ? errors.notAuthenticated() : error, request, reply);
  });
  management.addHook('onRequest', async () => {
    if (!isPrepared()) throw errors.unavailable('The database is being brought up to date. Try again.', 2);
  });
  management.addHook('onRequest', access.onRequest);
  management.addHook('preValidation', access.preValidation);
  refuseUnknownParameters(management);
  management.addHook('onResponse', async (request, reply) => access.onResponse(request, reply));
  management.addHook('onClose', access.finish);
}
