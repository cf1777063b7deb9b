import { createHash, webcrypto } from 'node:crypto';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { compileFunction } from '../../../functions/compile.ts';
import { NO_SECRETS } from '../../../functions/reads/secrets.ts';
import type { InputSchema } from '../../../functions/rules/definition.ts';
import { findTemplate } from '../../../functions/templates/index.ts';
import type { Template } from '../../../functions/templates/template.ts';
import { createOwnParser, type Parser } from '../../../hog/parser/index.ts';

// jsdom has no types.
interface Element {
  style: Record<string, string>;
  innerHTML: string;
  shadowRoot: Element | null;
  querySelector(selector: string): Element | null;
  click(): void;
}
interface Page {
  eval(code: string): unknown;
  document: { body: { firstElementChild: Element | null } };
}
interface Console {
  on(name: string, listener: (...given: unknown[]) => void): void;
}
const { JSDOM, ResourceLoader, VirtualConsole } = createRequire(import.meta.url)('jsdom') as {
  JSDOM: new (html: string, options: object) => { window: Page };
  ResourceLoader: new () => { fetch(url: string): Promise<Buffer> };
  VirtualConsole: new () => Console;
};

let parser: Parser;
beforeAll(async () => {
  ({ parser } = await createOwnParser());
});
afterAll(() => parser.close());

const valuesOf = (schemas: readonly InputSchema[], given: Record<string, unknown> = {}) =>
  Object.fromEntries(
    schemas.flatMap(({ key, default: value }) => {
      const own = given[key] ?? value;
      return own === undefined ? [] : [[key, { value: own }]];
    }),
  );

interface Visit {
  inputs?: Record<string, unknown>;
  url?: string;
  /** The script of the service. */
  service?: string;
  /** What the page has done before. */
  before?: string;
  person?: Record<string, unknown>;
}

/** Loads a template in a page. Scripts of others are answered with `service`. */
async function visit(
  id: string,
  { inputs, url = 'https://shop.example/', service = '', before = '', person = {} }: Visit = {},
) {
  const template = findTemplate(id) as Template;
  const { transpiled } = await compileFunction(parser, {
    type: template.type,
    content: {
      ...{ hog: template.hog, inputs_schema: template.inputs_schema, filters: {}, masking: null },
      inputs: valuesOf(template.inputs_schema, inputs),
      mappings:
        template.mapping_templates?.map(({ name, filters, inputs_schema: schemas }) => ({
          ...{ name, filters, inputs_schema: schemas, inputs: valuesOf(schemas ?? []) },
        })) ?? null,
    },
    ...{ secrets: NO_SECRETS, isEnabled: true, testAccounts: [], actions: [], now: 0, timezone: 'UTC' },
  });
  const asked: string[] = [];
  class Service extends ResourceLoader {
    override fetch(address: string) {
      asked.push(address);
      return Promise.resolve(Buffer.from(service));
    }
  }
  const errors: unknown[] = [];
  const virtualConsole = new VirtualConsole();
  virtualConsole.on('error', (...error) => errors.push(error));
  virtualConsole.on('jsdomError', (error) => errors.push(error));
  const { window } = new JSDOM('<!doctype html><body><p>Page</p>', {
    ...{ url, virtualConsole, runScripts: 'dangerously', resources: new Service() },
  });
  // jsdom has neither.
  Object.defineProperty(window, 'crypto', { value: webcrypto });
  Object.assign(window, { TextEncoder });
  window.eval(before);
  const posthog = { get_property: () => person, config: {} };
  const loaded = Promise.withResolvers<void>();
  const load = () =>
    (
      window.eval(`(${transpiled})()`) as { init(config: object): { processEvent(globals: object): void } }
    ).init({
      posthog,
      callback: () => loaded.resolve(),
    });
  const { processEvent } = load();
  // A client gives no event to a function that still loads.
  await loaded.promise;
  const send = (event: string, properties: object = {}) =>
    processEvent({
      event: { event, uuid: 'u-1', distinct_id: 'ada', properties },
      ...{ person: { properties: person }, groups: {} },
    });
  const read = (expression: string) => JSON.parse(String(window.eval(`JSON.stringify(${expression})`)));
  return {
    window,
    send,
    read,
    asked,
    errors,
    load,
    settled: () => new Promise((done) => setTimeout(done, 20)),
  };
}

describe('pixels', () => {
  const pixelId = 'P/1&x';

  test('TikTok: identifies, and tracks what mappings choose', async () => {
    const page = await visit('template-tiktok-pixel', { inputs: { pixelId }, person: { email: 'Ada@X.io' } });
    page.send('Product Added', { product_id: 'p1', name: 'Tea', price: '4.5', quantity: 2 });
    page.send('Order Completed', {
      products: [{ product_id: 'p1', price: 4 }, { product_id: 'p2' }],
      revenue: 9,
      currency: 'EUR',
    });
    page.send('unknown');
    await page.settled();
    expect(page.asked).toEqual(['https://analytics.tiktok.com/i18n/pixel/events.js?sdkid=P%2F1%26x&lib=ttq']);
    const calls = page.read(`ttq._i[${JSON.stringify(pixelId)}]`);
    expect(calls).toEqual([
      ['identify', { email: createHash('sha256').update('ada@x.io').digest('hex') }],
      [
        'track',
        'AddToCart',
        {
          ...{ content_ids: ['p1'], currency: 'USD', value: 4.5, num_items: 2, content_type: 'product' },
          contents: [
            {
              content_id: 'p1',
              price: '4.5',
              content_category: null,
              content_name: 'Tea',
              brand: null,
              quantity: 2,
            },
          ],
        },
        { event_id: 'u-1' },
      ],
      [
        'track',
        'CompletePayment',
        expect.objectContaining({
          ...{
            content_ids: ['p1', 'p2'],
            currency: 'EUR',
            value: 9,
            num_items: 2,
            content_type: 'product_group',
          },
        }),
        { event_id: 'u-1' },
      ],
    ]);
    expect(page.errors).toEqual([]);
  });

  test('Snapchat: calls wait for the script, which then gets them itself', async () => {
    const service = `var calls = snaptr.queue.map((one) => Array.from(one)); snaptr.handleRequest = (...one) => calls.push(one);`;
    const page = await visit('template-snapchat-pixel', {
      ...{ inputs: { pixelId }, service, person: { email: 'ada@x.io' } },
    });
    page.send('$pageview');
    await page.settled();
    page.send('Order completed', { price: '12', currency: 'EUR', orderId: 'o1', success: 1 });
    expect(page.asked).toEqual(['https://sc-static.net/scevent.min.js']);
    expect(page.read('calls')).toEqual([
      ['init', pixelId, { user_email: 'ada@x.io' }],
      ['track', 'PAGE_VIEW', { client_dedup_id: 'u-1' }],
      [
        ...['track', 'PURCHASE'],
        { price: 12, currency: 'EUR', transaction_id: 'o1', success: 1, client_dedup_id: 'u-1' },
      ],
    ]);
  });

  test('Reddit: known events by their name, others as custom ones; a pixel that the page has is used', async () => {
    const page = await visit('template-reddit-pixel', {
      ...{ inputs: { pixelId }, before: 'var calls = []; window.rdt = (...one) => calls.push(one);' },
    });
    page.send('Order Completed', {
      products: [{ product_id: 'p1', name: 'Tea' }],
      value: 5,
      currency: 'EUR',
    });
    page.send('Lead Generated');
    expect(page.asked).toEqual([]);
    expect(page.read('calls')).toEqual([
      ['init', pixelId, {}],
      [
        ...['track', 'Purchase'],
        {
          conversion_id: 'u-1',
          products: [{ id: 'p1', category: null, name: 'Tea' }],
          value: 5,
          currency: 'EUR',
        },
      ],
      ['track', 'Lead', { conversion_id: 'u-1' }],
    ]);
  });

  test('Google Tag Manager: starts the container and gives it what is chosen', async () => {
    const page = await visit('template-google-tag-manager', { inputs: { containerId: 'GTM-1' } });
    page.send('$pageview', { title: 'Home', $current_url: 'https://shop.example/' });
    page.send('other');
    await page.settled();
    expect(page.asked).toEqual(['https://www.googletagmanager.com/gtm.js?id=GTM-1']);
    expect(page.read('dataLayer')).toEqual([
      { 'gtm.start': expect.any(Number), event: 'gtm.js' },
      { event: '$pageview', title: 'Home', url: 'https://shop.example/' },
    ]);
  });
});

describe('the notification bar', () => {
  const bar = ({ window }: { window: Page }) =>
    window.document.body.firstElementChild?.shadowRoot?.querySelector('div[role=status]');
  const show = (notification: string, more: Visit & { inputs?: object } = {}) =>
    visit('template-notification-bar', { ...more, inputs: { notification, ...more.inputs } });

  test('shows the message with its colors, at the top', async () => {
    const page = await show('Hello <b>you</b> <a href="/sale">sale</a>', { inputs: { textColor: 'red' } });
    expect(bar(page)?.style).toMatchObject({ backgroundColor: 'rgb(235, 236, 232)', color: 'red' });
    expect(bar(page)?.querySelector('div')?.innerHTML).toBe(
      'Hello <b>you</b> <a href="https://shop.example/sale" style="color: rgb(246, 78, 0);">sale</a>',
    );
    const host = page.window.document.body.firstElementChild;
    expect(host?.style.position).toBe('sticky');
    const top = await show('Hello', { inputs: { position: 'top-of-page' } });
    expect(top.window.document.body.firstElementChild?.style.position).toBe('');
  });

  test.each([
    ['<script>window.hit=1</script>a', 'a'],
    ['<img src=x onerror="window.hit=1">a', 'a'],
    ['<b onclick="window.hit=1" style="position:fixed">a</b>', '<b>a</b>'],
    ['<svg><a xlink:href="javascript:window.hit=1"><text>a</text></a></svg>b', 'b'],
    ['<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1>', ''],
    ['<div><h1>a</h1></div>', 'a'],
    ['<iframe srcdoc="<script>parent.hit=1</script>"></iframe>', ''],
    ['<a href="//other.example/">a</a>', '<a href="https://other.example/">a</a>'],
    ...[
      'javascript:window.hit=1',
      ' java\tscript:window.hit=1',
      'data:text/html,a',
      'blob:x',
      'http://[',
    ].map((href) => [`<a href="${href}">a</a>`, '<a>a</a>']),
  ])('cleans %s', async (html, expected) => {
    const page = await show(html);
    await page.settled();
    const shown = bar(page)
      ?.querySelector('div')
      ?.innerHTML.replaceAll(/ style="color: [^"]*"/g, '');
    expect(shown).toBe(expected);
    expect(page.read('window.hit ?? null')).toBeNull();
  });

  test('properties of a person are cleaned as well, and a color is no way into the style', async () => {
    const page = await show('Hello {person.properties.name}', {
      person: { name: '<img src=x onerror=window.hit=1>Ada' },
      inputs: { textColor: 'red; position: fixed' },
    });
    expect(bar(page)?.querySelector('div')?.innerHTML).toBe('Hello Ada');
    expect(bar(page)?.style.position).toBe('');
  });

  test('is on the pages that it is for', async () => {
    const domains = 'a.example, Shop.example ';
    expect(bar(await show('a', { inputs: { domains } }))).toBeTruthy();
    expect(bar(await show('a', { inputs: { domains }, url: 'https://www.shop.example/' }))).toBeFalsy();
  });

  test.each([
    ['yes', false],
    ['no', true],
  ])('is remembered as closed: %s', async (rememberClose, isBack) => {
    const page = await show('a', { inputs: { rememberClose } });
    bar(page)?.querySelector('button')?.click();
    expect(bar(page)).toBeFalsy();
    page.load();
    expect((bar(page) ?? null) !== null).toBe(isBack);
  });
});
