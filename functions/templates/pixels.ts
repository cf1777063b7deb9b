// Scripts of advertisers and of Google Tag Manager, which web pages load.
import type { GivenMapping, InputSchema } from '../rules/definition.ts';
import { choice, dictionary, text } from './inputs.ts';
import { site, type Written } from './parts.ts';
import type { Template } from './template.ts';

/** Functions of programs: they load a script beside the page, and leave out what is empty. */
const COMMON = `function loadScript(url) {
  const script = document.createElement('script')
  script.async = true
  script.src = url
  document.head.append(script)
}
function filled(...given) {
  const entries = given.flatMap((one) => Object.entries(one ?? {}))
  return Object.fromEntries(entries.filter(([, value]) => value !== null && value !== undefined && value !== ''))
}
`;

type Mapped = GivenMapping & { name: string; include_by_default?: boolean };

/** A mapping that is there from the beginning: events of one name become an event of the service. */
const mapping = (name: string, event: string, inputs: InputSchema[]): Mapped => ({
  ...{ name, include_by_default: true, inputs_schema: inputs },
  filters: { events: [{ id: event, name: event === '$pageview' ? 'Pageview' : event, type: 'events' }] },
});

const pixel = (icon: string, given: Written): Template => ({
  ...site('site_destination', given, icon),
  status: 'beta',
});

const pixelId = (service: string) =>
  text('pixelId', 'Pixel ID', {
    description: `The ID of your pixel at ${service}. Use the one that your server sends its events to, if there is one.`,
    required: true,
  });
const userProperties = (service: string, value: Record<string, string>, more = '') =>
  dictionary('userProperties', 'About the person', {
    description: `What ${service} learns about the person. Empty values are left out.${more}`,
    default: value,
  });
const eventProperties = (service: string, value: Record<string, string>) =>
  dictionary('eventProperties', 'About the event', {
    description: `What ${service} learns about the event. Empty values are left out.`,
    default: value,
  });
const eventType = (service: string, value: string) =>
  text('eventType', 'Event', {
    description: `The name of the event at ${service}.`,
    default: value,
    required: true,
  });

const MONEY = 'event.properties.value ?? event.properties.revenue ?? event.properties.price';

/** What is known of products at TikTok: of one that is the event itself, or of a list. */
const TIKTOK_PRODUCT = (from: string) =>
  `{'content_id': ${from}.product_id, 'price': ${from}.price, 'content_category': ${from}.category, ` +
  `'content_name': ${from}.name, 'brand': ${from}.brand, 'quantity': ${from}.quantity}`;

const tiktokInputs = (event: string, hasProducts: boolean): InputSchema[] => [
  eventType('TikTok', event),
  eventProperties('TikTok', {
    content_ids: hasProducts
      ? '{arrayMap(product -> product.product_id, event.properties.products ?? [])}'
      : '{event.properties.product_id ? [event.properties.product_id] : null}',
    contents: hasProducts
      ? `{arrayMap(product -> (${TIKTOK_PRODUCT('product')}), event.properties.products ?? [])}`
      : `{[${TIKTOK_PRODUCT('event.properties')}]}`,
    currency: "{event.properties.currency ?? 'USD'}",
    value: `{toFloat(${MONEY})}`,
    num_items: hasProducts ? '{length(event.properties.products ?? [])}' : '{event.properties.quantity}',
    search_string: '{event.properties.query}',
    description: '',
  }),
  {
    ...choice(
      'contentType',
      'Kind of content',
      { product: 'Product', product_group: 'Group of products' },
      { description: 'Whether the IDs of the contents are those of products or of groups.' },
    ),
    default: hasProducts ? 'product_group' : 'product',
  },
  text('eventId', 'ID of the event', {
    description: 'TikTok counts an event that it gets from several sides once.',
    default: '{event.uuid}',
    required: true,
  }),
];

/** Names of mappings and of events, and what TikTok calls them. The last column: whether the event has many products. */
const TIKTOK_EVENTS: [name: string, event: string, theirs: string, hasProducts: boolean][] = [
  ['Page Viewed', '$pageview', 'Pageview', false],
  ['Order Completed', 'Order Completed', 'CompletePayment', true],
  ['Product Viewed', 'Product Viewed', 'ViewContent', false],
  ['Product Clicked', 'Product Clicked', 'ClickButton', false],
  ['Products Searched', 'Products Searched', 'Search', false],
  ['Add to Wishlist', 'Add to Wishlist', 'AddToWishlist', false],
  ['Product Added', 'Product Added', 'AddToCart', false],
  ['Checkout Started', 'Checkout Started', 'InitiateCheckout', true],
  ['Add Payment Info', 'Add Payment Info', 'AddPaymentInfo', true],
  ['Place an Order', 'Place an Order', 'PlaceAnOrder', true],
  ['Signed Up', 'Signed Up', 'CompleteRegistration', true],
];

export const TIKTOK_PIXEL = pixel('tiktok', {
  id: 'template-tiktok-pixel',
  name: 'TikTok Pixel',
  description: 'Tells TikTok in web pages what its users do there.',
  category: ['Advertisement'],
  hog: `${COMMON}
const METHODS = [
  'page', 'track', 'identify', 'instances', 'debug', 'on', 'off', 'once', 'ready', 'alias', 'group', 'enableCookie',
  'disableCookie', 'holdConsent', 'revokeConsent', 'grantConsent',
]
// Calls are kept in a list until the script of TikTok takes them over.
function keepCalls(list) {
  for (const name of METHODS) list[name] = (...given) => list.push([name, ...given])
  return list
}
function queueOf(pixelId) {
  const queue = (window.ttq = window.ttq ?? keepCalls([]))
  window.TiktokAnalyticsObject = 'ttq'
  queue.instance = queue.instance ?? ((id) => queue._i?.[id] ?? [])
  queue._i = queue._i ?? {}
  if (!queue._i[pixelId]) {
    const url = 'https://analytics.tiktok.com/i18n/pixel/events.js'
    queue._i[pixelId] = keepCalls(Object.assign([], { _u: url }))
    queue._t = { ...queue._t, [pixelId]: Date.now() }
    queue._o = { ...queue._o, [pixelId]: {} }
    loadScript(url + '?sdkid=' + encodeURIComponent(pixelId) + '&lib=ttq')
  }
  return queue.instance(pixelId)
}

// Null where the page is not secure: then the value does not leave it.
async function hashed(value) {
  const text = String(value).trim().toLowerCase()
  if (/^[0-9a-f]{64}$/.test(text)) return text
  const digest = await window.crypto?.subtle?.digest('SHA-256', new TextEncoder().encode(text))
  return digest ? Array.from(new Uint8Array(digest), (one) => one.toString(16).padStart(2, '0')).join('') : null
}

export async function onLoad({ inputs }) {
  const queue = queueOf(inputs.pixelId)
  const person = {}
  for (const [key, value] of Object.entries(filled(inputs.userProperties))) person[key] = await hashed(value)
  queue.identify(filled(person))
}
export function onEvent({ inputs }) {
  const properties = filled(inputs.eventProperties, { content_type: inputs.contentType })
  queueOf(inputs.pixelId).track(inputs.eventType, properties, { event_id: inputs.eventId })
}
`,
  inputs_schema: [
    pixelId('TikTok'),
    userProperties(
      'TikTok',
      {
        email: '{person.properties.email}',
        phone_number: '{person.properties.phone}',
        external_id: '{person.id}',
      },
      ' Only their SHA-256 leaves the page. A value that is one already stays as it is.',
    ),
  ],
  mapping_templates: TIKTOK_EVENTS.map(([name, event, theirs, hasProducts]) =>
    mapping(name, event, tiktokInputs(theirs, hasProducts)),
  ),
});

const SNAPCHAT_EVENTS: [name: string, event: string, theirs: string][] = [
  ['Page viewed', '$pageview', 'PAGE_VIEW'],
  ['Order completed', 'Order completed', 'PURCHASE'],
  ['Checkout started', 'Checkout started', 'START_CHECKOUT'],
  ['Product added', 'Product added', 'ADD_CART'],
  ['Payment info entered', 'Payment info entered', 'ADD_BILLING'],
  ['Promotion clicked', 'Promotion clicked', 'AD_CLICK'],
  ['Promotion viewed', 'Promotion viewed', 'AD_VIEW'],
  ['Product added to wishlist', 'Product added to wishlist', 'ADD_TO_WISHLIST'],
  ['Product viewed', 'Product viewed', 'VIEW_CONTENT'],
  ['Product list viewed', 'Product list viewed', 'VIEW_CONTENT'],
  ['Products searched', 'Products searched', 'SEARCH'],
];

export const SNAPCHAT_PIXEL = pixel('snapchat', {
  id: 'template-snapchat-pixel',
  name: 'Snapchat Pixel',
  description: 'Tells Snapchat in web pages what its users do there.',
  category: ['Advertisement'],
  hog: `${COMMON}
function callSnapchat(...given) {
  if (!window.snaptr) {
    // Calls are kept until the script of Snapchat takes them over.
    const waiting = (...call) => (waiting.handleRequest ? waiting.handleRequest(...call) : waiting.queue.push(call))
    waiting.queue = []
    window.snaptr = waiting
    loadScript('https://sc-static.net/scevent.min.js')
  }
  window.snaptr(...given)
}

export function onLoad({ inputs }) {
  callSnapchat('init', inputs.pixelId, filled(inputs.userProperties))
}
export function onEvent({ inputs }) {
  callSnapchat('track', inputs.eventType, filled(inputs.eventProperties, inputs.additionalProperties))
}
`,
  inputs_schema: [
    pixelId('Snapchat'),
    userProperties('Snapchat', { user_email: '{person.properties.email}' }),
    eventProperties('Snapchat', {
      price: '{toFloat(event.properties.price ?? event.properties.value ?? event.properties.revenue)}',
      currency: '{event.properties.currency}',
      item_ids: '{event.properties.item_ids}',
      item_category: '{event.properties.category}',
      description: '{event.properties.description}',
      search_string: '{event.properties.search_string}',
      number_items: '{toInt(event.properties.number_items ?? event.properties.quantity)}',
      payment_info_available: '{toInt(event.properties.payment_info_available)}',
      sign_up_method: '{event.properties.sign_up_method}',
      brands: '{event.properties.brands}',
      success: '{toInt(event.properties.success) in (0, 1) ? toInt(event.properties.success) : null}',
      transaction_id:
        '{event.properties.orderId ?? event.properties.transactionId ?? event.properties.transaction_id}',
      client_dedup_id: '{event.uuid}',
    }),
  ],
  mapping_templates: SNAPCHAT_EVENTS.map(([name, event, theirs]) =>
    mapping(name, event, [
      eventType('Snapchat', theirs),
      dictionary('additionalProperties', 'More about the event', {
        description: 'Further values for this kind of event. They win over those of the function.',
        default: {},
      }),
    ]),
  ),
});

const REDDIT_EVENTS: [name: string, event: string, theirs: string][] = [
  ['Page Visit', '$pageview', 'PageVisit'],
  ['Search', 'Products Searched', 'Search'],
  ['Product Added', 'Product Added', 'AddToCart'],
  ['Product Added to Wishlist', 'Product Added to Wishlist', 'AddToWishlist'],
  ['Order Completed', 'Order Completed', 'Purchase'],
  ['Product Viewed', 'Product Viewed', 'ViewContent'],
  ['Lead Generated', 'Lead Generated', 'Lead'],
  ['Signed Up', 'Signed Up', 'SignUp'],
];
const REDDIT_PRODUCT = (from: string) =>
  `{'id': ${from}.product_id, 'category': ${from}.category, 'name': ${from}.name}`;

export const REDDIT_PIXEL = pixel('reddit', {
  id: 'template-reddit-pixel',
  name: 'Reddit Pixel',
  description: 'Tells Reddit in web pages what its users do there. Reddit sets cookies of its own.',
  category: ['Advertisement'],
  hog: `${COMMON}
const KNOWN = new Set(['PageVisit', 'Search', 'AddToCart', 'AddToWishlist', 'Purchase', 'ViewContent', 'Lead', 'SignUp', 'Custom'])

function callReddit(...given) {
  if (!window.rdt) {
    // Calls are kept until the script of Reddit takes them over.
    const waiting = (...call) => (waiting.sendEvent ? waiting.sendEvent(...call) : waiting.callQueue.push(call))
    waiting.callQueue = []
    window.rdt = waiting
    loadScript('https://www.redditstatic.com/ads/pixel.js')
  }
  window.rdt(...given)
}

export function onLoad({ inputs }) {
  callReddit('init', inputs.pixelId, filled(inputs.userProperties))
}
export function onEvent({ inputs }) {
  const properties = filled(inputs.eventProperties)
  if (KNOWN.has(inputs.eventType)) callReddit('track', inputs.eventType, properties)
  else callReddit('track', 'Custom', { ...properties, customEventName: inputs.eventType })
}
`,
  inputs_schema: [pixelId('Reddit'), userProperties('Reddit', { email: '{person.properties.email}' })],
  mapping_templates: REDDIT_EVENTS.map(([name, event, theirs]) =>
    mapping(name, event, [
      eventType('Reddit', theirs),
      eventProperties('Reddit', {
        conversion_id: '{event.uuid}',
        products:
          `{event.properties.products ? arrayMap(product -> (${REDDIT_PRODUCT('product')}), event.properties.products) ` +
          `: event.properties.product_id ? [${REDDIT_PRODUCT('event.properties')}] : null}`,
        value: `{toFloat(${MONEY})}`,
        currency: '{event.properties.currency}',
      }),
    ]),
  ),
});

export const GOOGLE_TAG_MANAGER = pixel('google-tag-manager', {
  id: 'template-google-tag-manager',
  name: 'Google Tag Manager',
  description: 'Loads a container of Google Tag Manager in web pages and gives it the events there.',
  category: ['Custom'],
  hog: `${COMMON}
const layer = () => (window.dataLayer = window.dataLayer ?? [])

export function onLoad({ inputs }) {
  layer().push({ 'gtm.start': Date.now(), event: 'gtm.js' })
  loadScript('https://www.googletagmanager.com/gtm.js?id=' + encodeURIComponent(inputs.containerId))
}
export function onEvent({ inputs }) {
  layer().push(inputs.payload)
}
`,
  inputs_schema: [
    text('containerId', 'Container ID', {
      description: 'Begins with GTM-. The list of your containers shows it.',
      required: true,
    }),
  ],
  mapping_templates: [
    mapping('Pageview', '$pageview', [
      dictionary('payload', 'What is sent', {
        description: 'What the container gets for each event.',
        default: {
          event: '{event.event}',
          title: '{event.properties.title}',
          url: '{event.properties.$current_url}',
        },
      }),
    ]),
  ],
});
