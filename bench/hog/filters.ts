// The filters of the benchmark, as the filter editor usually creates them, and the events that they test.
import { build, type Expr } from '../../hog/ast/index.ts';

const { and, call, compare, constant, field, integer, or } = build;
const event = (name: string) => compare('==', field('event'), constant(name));
const property = (name: string) => field('properties', name);
const text = (expr: Expr) => call('toString', expr);

export const filters: Record<string, Expr> = {
  'one event': event('$pageview'),
  'event and property': and([event('$pageview'), compare('==', property('$browser'), constant('Chrome'))]),
  'one of three events': or([event('$pageview'), event('$pageleave'), event('signed up')]),
  'property in a list': compare(
    'in',
    property('$os'),
    build.tuple([constant('Linux'), constant('Windows'), constant('Mac OS X')]),
  ),
  'number at least': and([
    event('order placed'),
    compare('>=', property('amount'), integer(100)),
    compare('!=', property('currency'), constant(null)),
  ]),
  'text contains': compare('ilike', text(property('$current_url')), constant('%/docs/%')),
  'test accounts and events': and([
    compare('not ilike', text(field('person', 'properties', 'email')), constant('%@posthog.com%')),
    or([
      event('$pageview'),
      and([event('$autocapture'), compare('==', property('$browser'), constant('Safari'))]),
    ]),
  ]),
  'property set or not': or([
    compare('!=', property('$referrer'), constant(null)),
    compare('==', property('utm_source'), constant(null)),
  ]),
};

const NAMES = ['$pageview', '$autocapture', '$pageleave', 'order placed', 'signed up'];
const BROWSERS = ['Chrome', 'Safari', 'Firefox'];
const SYSTEMS = ['Linux', 'Windows', 'iOS', 'Android'];

/** Events as functions see them, parsed from JSON. */
export const events: object[] = Array.from({ length: 1_000 }, (_, i) =>
  JSON.parse(
    JSON.stringify({
      event: NAMES[i % NAMES.length],
      uuid: `0190-${i}`,
      distinct_id: `user-${i % 100}`,
      timestamp: '2026-01-01T00:00:00Z',
      elements_chain: '',
      properties: {
        $browser: BROWSERS[i % BROWSERS.length],
        $os: SYSTEMS[i % SYSTEMS.length],
        $current_url: `https://example.com/${i % 7 === 0 ? 'docs' : 'app'}/page-${i}`,
        $lib: 'web',
        amount: i % 250,
        currency: i % 3 === 0 ? 'EUR' : null,
        ...(i % 2 === 0 && { $referrer: 'https://news.example.com' }),
      },
      person: { id: `p${i % 100}`, properties: { email: `person${i}@example.com`, plan: 'pro' } },
    }),
  ),
);
