import type { InputSchema } from '../rules/definition.ts';
import { choice, eventType, MONEY, mapping, text } from './inputs.ts';
import { COMMON, eventProperties, pixel, pixelId, userProperties } from './pixel-parts.ts';

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
