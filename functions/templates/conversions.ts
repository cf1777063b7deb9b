// Conversions for Snapchat and Reddit. What an event is called there, its mapping says.
import { COUNT, hashed, hashedPhone, PRODUCTS, product, SECONDS, VALUE } from './ads-parts.ts';
import {
  bearerToken,
  CHOSEN,
  choice,
  destination,
  dictionary,
  eventType,
  failIfRefused,
  flag,
  mapping,
  secret,
  text,
} from './inputs.ts';

/** Hog that fails if no mapping names the event of a service. */
const failWithoutName = (
  service: string,
) => `if (empty(inputs.eventType)) { throw Error('No mapping says what this event is called at ${service}.') }
`;

const SNAPCHAT_PRODUCT = (from: string) =>
  `{'id': ${from}.sku ?? ${from}.product_id, 'item_price': ${from}.price, 'quantity': ${from}.quantity, 'delivery_category': 'normal'}`;
const SNAPCHAT_ORDER = {
  content_ids: `{arrayMap(one -> one.sku ?? one.product_id, ${PRODUCTS})}`,
  content_category: `{arrayMap(one -> one.category, ${PRODUCTS})}`,
  contents: `{arrayMap(one -> (${SNAPCHAT_PRODUCT('one')}), ${PRODUCTS})}`,
  num_items: COUNT,
};
const SNAPCHAT_ONE = {
  content_ids: product('event.properties.sku ?? event.properties.product_id'),
  content_category: '{event.properties.category}',
  contents: product(SNAPCHAT_PRODUCT('event.properties')),
  num_items: '{event.properties.quantity}',
};
const SNAPCHAT_EVENTS: [event: string, theirs: string, hasProducts?: true][] = [
  ['$pageview', 'PAGE_VIEW'],
  ['Order Completed', 'PURCHASE', true],
  ['Checkout Started', 'START_CHECKOUT', true],
  ['Product Added', 'ADD_CART'],
  ['Payment Info Entered', 'ADD_BILLING'],
  ['Promotion Clicked', 'AD_CLICK'],
  ['Promotion Viewed', 'AD_VIEW'],
  ['Product Added to Wishlist', 'ADD_TO_WISHLIST'],
  ['Product Viewed', 'VIEW_CONTENT'],
  ['Product List Viewed', 'VIEW_CONTENT'],
  ['Products Searched', 'SEARCH'],
];

export const SNAPCHAT_ADS = destination('snapchat', {
  id: 'template-snapchat-ads',
  name: 'Snapchat Ads Conversions',
  description: 'Sends events as conversions to the Conversions API of Snapchat. Personal data is hashed.',
  category: ['Advertisement'],
  // Snapchat refuses events of nobody in particular.
  hog: `${CHOSEN}${failWithoutName('Snapchat')}let user := chosen(false, null, inputs.userData)
let isBrowser := notEmpty(user.client_ip_address) and notEmpty(user.client_user_agent)
if (empty(user.em) and empty(user.ph) and not isBrowser) {
  print('The event has no email address, no phone number, and no IP address with a user agent. It is skipped.')
  return
}
let conversion := {
  'event_name': inputs.eventType,
  'event_id': inputs.eventId,
  'event_time': toInt(inputs.eventTime),
  'action_source': inputs.actionSource,
  'user_data': user,
  'custom_data': chosen(false, null, inputs.customData)
}
if (notEmpty(inputs.eventSourceUrl)) { conversion.event_source_url := inputs.eventSourceUrl }
let path := f'{encodeURLComponent(inputs.pixelId)}/events{inputs.testEventMode ? '/validate' : ''}'
let answer := fetch(f'https://tr.snapchat.com/v3/{path}?access_token={inputs.oauth.access_token}', {
  'method': 'POST',
  'headers': {'Content-Type': 'application/json'},
  'body': {'data': [conversion]}
})
${failIfRefused('tr.snapchat.com')}`,
  inputs_schema: [
    bearerToken('oauth', 'Snapchat account', 'tr.snapchat.com'),
    text('pixelId', 'Pixel ID', {
      description: 'The ID of the pixel that gets the conversions.',
      required: true,
    }),
    dictionary('userData', 'Data of the user', {
      description: 'Parameters of users as Snapchat defines them. Names, addresses and IDs are hashes.',
      default: {
        ...{ em: hashed('email'), ph: hashedPhone('') },
        sc_click_id: '{person.properties.sccid ?? person.properties.$initial_sccid}',
        client_user_agent: '{event.properties.$raw_user_agent}',
        client_ip_address: '{event.properties.$ip}',
        ...{ fn: hashed('first_name'), ln: hashed('last_name') },
        ...{ ct: hashed('$geoip_city_name'), country: hashed('$geoip_country_code') },
        ...{ st: hashed('$geoip_subdivision_1_code'), zp: hashed('$geoip_postal_code') },
        external_id: '{empty(person.id) ? null : sha256Hex(person.id)}',
      },
      required: true,
    }),
    flag('testEventMode', 'Only check', {
      description: 'Snapchat checks the conversions and does not count them.',
    }),
  ],
  mapping_templates: SNAPCHAT_EVENTS.map(([event, theirs, hasProducts]) =>
    mapping(event === '$pageview' ? 'Page viewed' : event, event, [
      eventType('Snapchat', theirs),
      text('eventId', 'Event ID', {
        description: 'By this ID Snapchat knows that a conversion came twice.',
        default: '{event.uuid}',
        required: true,
      }),
      text('eventTime', 'Time of the event', {
        description: 'In seconds since 1970.',
        default: SECONDS,
        required: true,
      }),
      text('eventSourceUrl', 'Page', { default: '{event.properties.$current_url}' }),
      choice(
        'actionSource',
        'Where it happened',
        { WEB: 'Website', MOBILE_APP: 'App', OFFLINE: 'Elsewhere' },
        { description: 'Where the conversion happened.' },
      ),
      dictionary('customData', 'Data of the event', {
        description: 'Parameters of the conversion as Snapchat defines them.',
        default: {
          ...{ value: VALUE, currency: '{event.properties.currency}' },
          ...(hasProducts ? SNAPCHAT_ORDER : SNAPCHAT_ONE),
          search_string: '{event.properties.search_string ?? event.properties.query}',
          order_id:
            '{event.properties.order_id ?? event.properties.orderId ?? event.properties.transaction_id}',
        },
      }),
    ]),
  ),
});

const REDDIT_PRODUCT = (from: string) =>
  `{'id': ${from}.product_id ?? ${from}.sku, 'category': ${from}.category, 'name': ${from}.name}`;
const REDDIT_EVENTS: [event: string, theirs: string][] = [
  ['$pageview', 'PageVisit'],
  ['Products Searched', 'Search'],
  ['Product Added', 'AddToCart'],
  ['Product Added to Wishlist', 'AddToWishlist'],
  ['Order Completed', 'Purchase'],
  ['Product Viewed', 'ViewContent'],
  ['Lead Generated', 'Lead'],
  ['Signed Up', 'SignUp'],
];

export const REDDIT_CONVERSIONS = destination('reddit', {
  id: 'template-reddit-conversions-api',
  name: 'Reddit Conversions',
  description: 'Sends events as conversions to the Conversions API of Reddit. Personal data is hashed.',
  category: ['Advertisement'],
  hog: `${CHOSEN}${failWithoutName('Reddit')}let known := ['PageVisit', 'Search', 'AddToCart', 'AddToWishlist', 'Purchase', 'ViewContent', 'Lead', 'SignUp']
let conversion := {
  'event_at': event.timestamp,
  'event_type': has(known, inputs.eventType)
    ? {'tracking_type': inputs.eventType}
    : {'tracking_type': 'Custom', 'custom_event_name': inputs.eventType},
  'user': chosen(false, null, inputs.userProperties),
  'event_metadata': chosen(false, null, inputs.eventProperties)
}
if (notEmpty(inputs.rdt_cid)) { conversion.click_id := inputs.rdt_cid }
let answer := fetch(f'https://ads-api.reddit.com/api/v2.0/conversions/events/{encodeURLComponent(inputs.accountId)}', {
  'method': 'POST',
  'headers': {
    'Authorization': f'Bearer {inputs.conversionsAccessToken}',
    'Content-Type': 'application/json',
    'User-Agent': 'sluice'
  },
  'body': {'test_mode': inputs.testMode = true, 'events': [conversion]}
})
${failIfRefused('ads-api.reddit.com')}`,
  inputs_schema: [
    text('accountId', 'Account ID', {
      description: 'The ID of the advertising account, with or without t2_ in front of it.',
      required: true,
    }),
    secret('conversionsAccessToken', 'Conversion access token', {
      description: 'A token of the Conversions API. The events manager of Reddit makes it.',
    }),
    dictionary('userProperties', 'Data of the user', {
      description: 'Parameters of users as Reddit defines them. Addresses and IDs are hashes.',
      default: {
        email: hashed('email'),
        external_id: '{empty(person.id) ? null : sha256Hex(person.id)}',
        ip_address: '{empty(event.properties.$ip) ? null : sha256Hex(event.properties.$ip)}',
        user_agent: '{event.properties.$raw_user_agent}',
        screen_dimensions:
          "{empty(event.properties.$screen_width) ? null : {'width': event.properties.$screen_width, 'height': event.properties.$screen_height}}",
      },
    }),
    flag('testMode', 'Only test', {
      description: 'Reddit shows the conversions as tests and does not count them.',
    }),
  ],
  mapping_templates: REDDIT_EVENTS.map(([event, theirs]) =>
    mapping(event === '$pageview' ? 'Page Visit' : event, event, [
      eventType('Reddit', theirs),
      text('rdt_cid', 'Click ID', {
        description: 'The ID that Reddit added to the address when somebody came from an advertisement.',
        default: '{person.properties.rdt_cid ?? person.properties.$initial_rdt_cid}',
      }),
      dictionary('eventProperties', 'Data of the event', {
        description: 'Parameters of the conversion as Reddit defines them.',
        default: {
          conversion_id: '{event.uuid}',
          products:
            `{notEmpty(event.properties.products) ? arrayMap(one -> (${REDDIT_PRODUCT('one')}), event.properties.products) ` +
            `: ${product(REDDIT_PRODUCT('event.properties')).slice(1, -1)}}`,
          value: VALUE,
          currency: '{event.properties.currency}',
        },
      }),
    ]),
  ),
});
