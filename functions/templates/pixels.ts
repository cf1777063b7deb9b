// Scripts of advertisers and of Google Tag Manager, which web pages load.
import { dictionary, eventType, MONEY, mapping, text } from './inputs.ts';
import { COMMON, eventProperties, pixel, pixelId, userProperties } from './pixel-parts.ts';

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
