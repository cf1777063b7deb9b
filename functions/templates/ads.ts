// Conversions for advertising. The services take personal data only as hashes of normalized values.
import { COUNT, hashed, hashedPhone, PRODUCTS, product, SECONDS, VALUE } from './ads-parts.ts';
import { CHOSEN, choice, destination, dictionary, mapping, secret, text } from './inputs.ts';

const pixelId = text('pixelId', 'Pixel ID', {
  description: 'The ID of the pixel that gets the conversions.',
  required: true,
});
const eventId = text('eventId', 'Event ID', {
  description: 'By this ID the service knows that a conversion came twice.',
  default: '{event.uuid}',
  required: true,
});
const testEventCode = text('testEventCode', 'Test event code', {
  description: 'Marks the conversions as tests. Empty: they count.',
});

const META_PRODUCT = (from: string) =>
  `{'id': ${from}.sku ?? ${from}.product_id, 'quantity': ${from}.quantity, 'item_price': ${from}.price}`;
const META_ONE = {
  currency: '{event.properties.currency}',
  value: VALUE,
  content_type: 'product',
  content_ids: product('event.properties.sku ?? event.properties.product_id'),
  contents: product(META_PRODUCT('event.properties')),
  content_name: '{event.properties.name}',
  content_category: '{event.properties.category}',
};
const META_MANY = {
  ...{ currency: '{event.properties.currency}', value: VALUE, content_type: 'product' },
  content_ids: `{arrayMap(one -> one.sku ?? one.product_id, ${PRODUCTS})}`,
  contents: `{arrayMap(one -> (${META_PRODUCT('one')}), ${PRODUCTS})}`,
  num_items: COUNT,
  order_id: '{event.properties.order_id}',
};
const META_EVENTS: [name: string, event: string, theirs: string, data: Record<string, string>][] = [
  ['Page Viewed', '$pageview', 'PageView', {}],
  ['Product Viewed', 'Product Viewed', 'ViewContent', META_ONE],
  [
    ...(['Products Searched', 'Products Searched', 'Search'] as const),
    { search_string: '{event.properties.query}', content_category: '{event.properties.category}' },
  ],
  ['Product Added', 'Product Added', 'AddToCart', META_ONE],
  ['Checkout Started', 'Checkout Started', 'InitiateCheckout', META_MANY],
  ['Order Completed', 'Order Completed', 'Purchase', META_MANY],
  ['Lead Generated', 'Lead Generated', 'Lead', { currency: '{event.properties.currency}', value: VALUE }],
  ['Signed Up', 'Signed Up', 'CompleteRegistration', {}],
];
const metaEventName = (value: string) =>
  text('eventName', 'Name of the event', {
    description: 'A standard event of Meta, such as Purchase, or one of your own.',
    default: value,
    required: true,
  });
const metaCustomData = (value: Record<string, string>) =>
  dictionary('customData', 'Data of the event', {
    description: 'Parameters of the conversion as Meta defines them.',
    default: value,
  });

export const META_ADS = destination('meta-ads', {
  id: 'template-meta-ads',
  name: 'Meta Ads Conversions',
  description: 'Sends events as conversions to the Conversions API of Meta. Personal data is hashed.',
  category: ['Advertisement'],
  hog: `${CHOSEN}let conversion := {
  'event_name': inputs.eventName,
  'event_id': inputs.eventId,
  'event_time': toInt(inputs.eventTime),
  'action_source': inputs.actionSource,
  'user_data': chosen(false, null, inputs.userData),
  'custom_data': chosen(false, null, inputs.customData)
}
if (notEmpty(inputs.eventSourceUrl)) { conversion.event_source_url := inputs.eventSourceUrl }
let body := {'data': [conversion], 'access_token': inputs.accessToken}
if (notEmpty(inputs.testEventCode)) { body.test_event_code := inputs.testEventCode }
let answer := fetch(f'https://graph.facebook.com/v25.0/{encodeURLComponent(inputs.pixelId)}/events', {
  'method': 'POST',
  'headers': {'Content-Type': 'application/json'},
  'body': body
})
if (answer.status >= 300) {
  throw Error(f'Error from graph.facebook.com (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    secret('accessToken', 'Access token', { description: 'A token of the Conversions API.' }),
    pixelId,
    metaEventName('{event.event}'),
    eventId,
    text('eventSourceUrl', 'Page', { default: '{event.properties.$current_url}' }),
    text('eventTime', 'Time of the event', {
      description: 'In seconds since 1970.',
      default: SECONDS,
      required: true,
    }),
    choice(
      'actionSource',
      'Where it happened',
      {
        ...{ website: 'Website', app: 'App', email: 'Email', phone_call: 'Phone call', chat: 'Chat' },
        ...{ physical_store: 'Physical store', system_generated: 'By itself' },
        ...{ business_messaging: 'Business messaging', other: 'Elsewhere' },
      },
      { description: 'Where the conversion happened.' },
    ),
    dictionary('userData', 'Data of the user', {
      description: 'Parameters of customers as Meta defines them. Names and addresses are hashes.',
      default: {
        ...{ em: hashed('email'), ph: hashedPhone(''), fn: hashed('first_name'), ln: hashed('last_name') },
        client_ip_address: '{event.properties.$ip}',
        client_user_agent: '{event.properties.$raw_user_agent}',
        fbc: '{person.properties.fbc}',
        fbp: '{person.properties.fbp}',
      },
      required: true,
    }),
    metaCustomData({
      currency: '{event.properties.currency}',
      value: VALUE,
      order_id: '{event.properties.order_id}',
    }),
    testEventCode,
  ],
  mapping_templates: META_EVENTS.map(([name, event, theirs, data]) =>
    mapping(name, event, [metaEventName(theirs), metaCustomData(data)]),
  ),
});

export const TIKTOK_ADS = destination('tiktok', {
  id: 'template-tiktok-ads',
  name: 'TikTok Ads Conversions',
  description: 'Sends events as conversions to the Events API of TikTok. Personal data is hashed.',
  category: ['Advertisement'],
  // TikTok says 200 to most mistakes. A code that is not 0 says what is wrong.
  hog: `${CHOSEN}let body := {
  'event_source': 'web',
  'event_source_id': inputs.pixelId,
  'data': [{
    'event': inputs.eventName,
    'event_time': toInt(inputs.eventTimestamp),
    'event_id': inputs.eventId,
    'user': chosen(false, null, inputs.userProperties),
    'properties': chosen(false, null, inputs.propertyProperties),
    'page': chosen(false, null, inputs.pageProperties)
  }]
}
if (notEmpty(inputs.testEventCode)) { body.test_event_code := inputs.testEventCode }
let answer := fetch('https://business-api.tiktok.com/open_api/v1.3/event/track/', {
  'method': 'POST',
  'headers': {'Content-Type': 'application/json', 'Access-Token': inputs.accessToken},
  'body': body
})
if (answer.status >= 300 or (answer.body.code ?? 0) != 0) {
  throw Error(f'Error from business-api.tiktok.com (status {answer.status}): {answer.body}')
}
`,
  inputs_schema: [
    secret('accessToken', 'Access token', { description: 'A token of the Events API.' }),
    pixelId,
    text('eventName', 'Name of the event', {
      description: 'A standard event of TikTok, such as CompletePayment, or one of your own.',
      default: '{event.event}',
      required: true,
    }),
    eventId,
    text('eventTimestamp', 'Time of the event', {
      description: 'In seconds since 1970.',
      default: SECONDS,
      required: true,
    }),
    dictionary('userProperties', 'Data of the user', {
      description: 'Parameters of users as TikTok defines them. Addresses, numbers and IDs are hashes.',
      default: {
        email: hashed('email'),
        phone: hashedPhone('+'),
        external_id: '{empty(person.id) ? null : sha256Hex(person.id)}',
        ttclid: '{person.properties.ttclid ?? person.properties.$initial_ttclid}',
        ip: '{event.properties.$ip}',
        user_agent: '{event.properties.$raw_user_agent}',
      },
      required: true,
    }),
    dictionary('propertyProperties', 'Data of the event', {
      description: 'Parameters of the conversion as TikTok defines them.',
      default: {
        currency: '{event.properties.currency}',
        value: VALUE,
        order_id: '{event.properties.order_id}',
      },
    }),
    dictionary('pageProperties', 'Page', {
      description: 'The page on which it happened.',
      default: { url: '{event.properties.$current_url}', referrer: '{event.properties.$referrer}' },
    }),
    testEventCode,
  ],
});
