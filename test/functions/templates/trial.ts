import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { createEgress, type Egress } from '../../../egress/egress.ts';
import { type Tried, tryFunction } from '../../../functions/commands/try-function.ts';
import { compileFunction, findPlaces } from '../../../functions/compile.ts';
import type { FunctionCompiler } from '../../../functions/compiler.ts';
import type { Integrations } from '../../../functions/effects.ts';
import { NO_SECRETS } from '../../../functions/reads/secrets.ts';
import type { GivenInput, GivenMapping, InputSchema } from '../../../functions/rules/definition.ts';
import { completeGlobals } from '../../../functions/rules/globals.ts';
import type { Begun } from '../../../functions/run.ts';
import { createRunner, type Runner } from '../../../functions/runner.ts';
import { findTemplate } from '../../../functions/templates/index.ts';
import type { Template } from '../../../functions/templates/template.ts';
import type { Bytecode } from '../../../hog/bytecode/index.ts';
import { createOwnParser, type Parser } from '../../../hog/parser/index.ts';
import { findKind } from '../../../integrations/kinds/registry.ts';
import { valuesOfToken } from '../../../integrations/reads/resolve.ts';
import {
  awsKeysOf,
  type Substitution,
  secretValues,
  substitute,
} from '../../../integrations/rules/substitution.ts';

/** A request as the service behind a template receives it. */
export interface Heard {
  method: string;
  /** The whole URL that the template asked for. */
  url: string;
  headers: IncomingMessage['headers'];
  /** Parsed if it is JSON. */
  body: unknown;
}

export interface Answer {
  status?: number;
  body?: unknown;
}

/** The access token that Google gives for the key of a service account. */
export const GOOGLE_TOKEN = 'token-of-google-5up3r';
const PROJECT = { id: 1, name: 'Shop' };
const SITE = 'https://sluice.test';
const PLACES = path.join(import.meta.dirname, '../../fixtures/geoip/GeoLite2-City-Test.mmdb');
const FRAME = { now: Date.parse('2026-01-01T00:00:05Z'), seed: 1 };
/** The event of most trials. */
export const PAID = {
  uuid: '018f0000-0000-7000-8000-000000000001',
  event: 'order paid',
  distinct_id: 'ada',
  properties: { amount: 5, currency: 'EUR', $ip: '81.2.69.142', $current_url: 'https://shop.test/cart?a=1' },
  timestamp: '2026-01-01T00:00:00.000Z',
  elements_chain: '',
};
export const ADA = {
  id: '018f0000-0000-7000-8000-0000000000aa',
  name: 'ada@shop.test',
  url: `${SITE}/project/1/person/ada`,
  properties: { email: 'ada@shop.test', first_name: 'Ada', last_name: 'Lovelace', phone: '+4912345' },
};

/** Tries templates against a local server that takes the place of every service. */
export interface Trials {
  /** What the service has heard since the trial began. */
  heard: Heard[];
  /**
   * Runs a template with inputs (values by key), against a service that gives these answers one after the other, the last
   * one for ever. `integration` is the kind and configuration that inputs of that type stand for.
   */
  run(
    templateId: string,
    given: {
      inputs?: Record<string, unknown>;
      answers?: Answer[];
      event?: object;
      person?: object | null;
      groups?: object;
      integration?: { kind: string; config: Record<string, unknown> };
      /** Values of the inputs of mappings. False: the function is without the mappings of its template. */
      mappings?: Record<string, unknown> | false;
    },
  ): Promise<Tried>;
  /** Runs a template of the type source_webhook with a request. Its inputs are those that are given, or the defaults. */
  receive(templateId: string, inputs: Record<string, unknown>, request: object): Promise<Begun>;
}

export function trialsForFile(): Trials {
  let parser: Parser;
  let runner: Runner;
  let egress: Egress;
  let server: Server;
  let answers: Answer[] = [];
  const trials: Trials = {
    heard: [],
    receive: () => Promise.reject(new Error('The trials have not begun.')),
    async run(templateId, { inputs = {}, event = {}, person = ADA, groups = {}, integration, ...more }) {
      const found = findTemplate(templateId);
      if (!found) throw new Error(`There is no template ${templateId}.`);
      const template = more.mappings === false ? { ...found, mapping_templates: null } : found;
      answers = [...(more.answers ?? [{}])];
      trials.heard = [];
      const content = await compiled(template, inputs, more.mappings || {});
      const globals = completeGlobals(
        { event: { ...PAID, ...event }, ...(person ? { person } : {}), groups },
        { project: PROJECT, site: SITE, source: { id: 'f', name: template.name } },
      );
      const frame = FRAME;
      return tryFunction(
        {
          ...{ runner, egress: { fetch: toService }, integrations: integrationsOf(integration) },
          read: () => Promise.reject(new Error('No template asks for a static cohort.')),
          compiler: {
            places: (_projectId: number, hog: string, bytecode: Bytecode) =>
              findPlaces(parser, hog, bytecode),
          } as FunctionCompiler,
        },
        { projectId: 1, type: template.type, content, globals, isMocked: false, frame },
      );
    },
  };

  /** Compiles a template with its defaults, and mappings with theirs, as someone would create a function from it. */
  const compiled = (
    template: Template,
    inputs: Record<string, unknown>,
    mapped: Record<string, unknown> = {},
  ) =>
    compileFunction(parser, {
      type: template.type,
      content: {
        ...{ hog: template.hog, inputs_schema: template.inputs_schema, masking: template.masking },
        filters: template.filters ?? {},
        mappings: template.mapping_templates?.map((one) => withDefaults(one, mapped)) ?? null,
        inputs: { ...defaultsOf(template.inputs_schema), ...given(inputs) },
      },
      ...{ secrets: NO_SECRETS, isEnabled: true, testAccounts: [], actions: [] },
      ...{ now: Date.now(), timezone: 'UTC' },
    });

  /** Sends what goes to any service to the local server, which learns the address from a header. */
  const toService: Egress['fetch'] = (url, options = {}) => {
    const { port } = server.address() as AddressInfo;
    const headers = { ...options.headers, 'x-asked-url': encodeURIComponent(String(url)) };
    return egress.fetch(`http://127.0.0.1:${port}/`, { ...options, headers });
  };

  trials.receive = async (templateId, inputs, request) => {
    const template = findTemplate(templateId);
    if (!template) throw new Error(`There is no template ${templateId}.`);
    const content = await compiled(template, inputs);
    const globals = completeGlobals(
      { event: { event: '$incoming_webhook' }, request },
      { project: PROJECT, site: SITE, source: { id: 'f', name: template.name } },
    );
    return runner.begin(1, {
      ...{ bytecode: content.bytecode as Bytecode, inputs: content.inputs, given: {}, globals },
      ...{ frame: FRAME, isTransformation: false },
    });
  };

  beforeAll(async () => {
    ({ parser } = await createOwnParser());
    runner = createRunner({ geoip: PLACES });
    egress = createEgress({ allow: '127.0.0.1' });
    server = createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', () => {
        const { 'x-asked-url': asked, ...headers } = request.headers;
        const url = decodeURIComponent(String(asked));
        trials.heard.push({ method: request.method ?? '', url, headers, body: parsed(text) });
        const { status = 200, body = {} } = (answers.length > 1 ? answers.shift() : answers[0]) ?? {};
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    await Promise.all([parser?.close(), runner?.close(), egress?.close()]);
    await new Promise((resolve) => server.close(resolve));
  });
  return trials;
}

const given = (values: Record<string, unknown>): Record<string, GivenInput> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, { value }]));

export const defaultsOf = (schemas: readonly InputSchema[]): Record<string, GivenInput> =>
  Object.fromEntries(
    schemas
      .filter((one) => one.default !== undefined && one.default !== null)
      .map(({ key, default: value }) => [key, { value }]),
  );

/** A mapping of a template as a function has it. */
export const withDefaults = (
  { name, filters, inputs_schema: schemas }: GivenMapping,
  values: Record<string, unknown> = {},
): GivenMapping => ({
  ...{ name, filters, inputs_schema: schemas, inputs: { ...defaultsOf(schemas ?? []), ...given(values) } },
});

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** An integration that is not stored. Its secrets travel as those of a stored one do. */
function integrationsOf(given: { kind: string; config: Record<string, unknown> } | undefined): Integrations {
  return {
    async resolve(_projectId, id) {
      const kind = given && findKind(given.kind);
      if (!kind) return undefined;
      const config = kind.fields.parse(given.config) as never;
      const signing = kind.signing?.(config) ?? null;
      // The token for which a key of Google is exchanged.
      const values = signing?.scheme === 'google-jwt' ? valuesOfToken(GOOGLE_TOKEN) : kind.values(config);
      const placeholders = Object.entries(values).map(([name, { value, form }]) => ({
        ...{ name, value, form, marker: `marker_of_${name}` },
      }));
      const substitution: Substitution = {
        ...{ integrationId: id, kind: given.kind, placeholders, hosts: kind.hosts(config) },
        signing,
      };
      return {
        inputs: Object.fromEntries(placeholders.map(({ name, marker }) => [name, marker])),
        substitution,
      };
    },
    substitute: (request, substitutions) => substitute(request, substitutions as readonly Substitution[]),
    awsKeys: (substitutions, id, url) => awsKeysOf(substitutions as readonly Substitution[], id, url),
    secretValues: (substitutions) => secretValues(substitutions as readonly Substitution[]),
  };
}
