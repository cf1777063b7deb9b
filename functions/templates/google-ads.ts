import { VALUE } from './ads-parts.ts';
import { destination, failIfRefused, integration, secret, skipWithout, text } from './inputs.ts';

/** Hog that reads an ID of an account, which Google shows with hyphens and takes without. */
const DIGITS = `fun digits(id) { return replaceAll(trim(toString(id)), '-', '') }
`;

export const GOOGLE_ADS = destination('google-ads', {
  id: 'template-google-ads',
  name: 'Google Ads Conversions',
  description: 'Sends events as conversions to Google Ads, for clicks that it knows by their gclid.',
  category: ['Advertisement'],
  // Google says 200 to a conversion that it refuses, and why in `partialFailureError`.
  hog: `${DIGITS}${skipWithout('inputs.gclid', 'click ID')}let customer := digits(inputs.customerId)
let conversion := {
  'gclid': inputs.gclid,
  'conversionAction': f'customers/{customer}/conversionActions/{digits(inputs.conversionActionId)}',
  'conversionDateTime': inputs.conversionDateTime
}
if (notEmpty(inputs.conversionValue)) { conversion.conversionValue := toFloat(inputs.conversionValue) }
if (notEmpty(inputs.currencyCode)) { conversion.currencyCode := inputs.currencyCode }
if (notEmpty(inputs.orderId)) { conversion.orderId := inputs.orderId }
let headers := {
  'Authorization': inputs.oauth.authorization,
  'Content-Type': 'application/json',
  'developer-token': inputs.developerToken
}
if (notEmpty(inputs.loginCustomerId)) { headers['login-customer-id'] := digits(inputs.loginCustomerId) }
let path := f'{encodeURLComponent(inputs.apiVersion)}/customers/{encodeURLComponent(customer)}:uploadClickConversions'
let answer := fetch(f'https://googleads.googleapis.com/{path}', {
  'method': 'POST',
  'headers': headers,
  'body': {'conversions': [conversion], 'partialFailure': true}
})
${failIfRefused('googleads.googleapis.com')}if (notEmpty(answer.body.partialFailureError)) {
  throw Error(f'Google Ads refused the conversion: {answer.body.partialFailureError.message}')
}
`,
  inputs_schema: [
    integration(
      'google-service-account',
      'oauth',
      'Google service account',
      'An account that may use Google Ads, with the scope https://www.googleapis.com/auth/adwords.',
    ),
    secret('developerToken', 'Developer token', {
      description: 'The token of the API center of your manager account.',
    }),
    text('customerId', 'Customer ID', {
      description: 'The account that gets the conversions, such as 123-456-7890.',
      required: true,
    }),
    text('loginCustomerId', 'Manager ID', {
      description:
        'The manager account by which the service account reaches it. Empty: it reaches it directly.',
    }),
    text('conversionActionId', 'Conversion action', {
      description: 'The number of the conversion action. Its address in Google Ads has it as ctId.',
      required: true,
    }),
    text('gclid', 'Click ID', {
      description: 'The gclid of the click. Events without one are skipped.',
      default: '{person.properties.gclid ?? person.properties.$initial_gclid}',
      required: true,
    }),
    text('conversionDateTime', 'Time of the conversion', {
      description: 'With an offset, such as 2026-01-31 12:00:00+00:00.',
      default: "{formatDateTime(toDateTime(event.timestamp), '%Y-%m-%d %H:%i:%S+00:00')}",
      required: true,
    }),
    text('conversionValue', 'Value', { default: VALUE }),
    text('currencyCode', 'Currency', { default: '{event.properties.currency}' }),
    text('orderId', 'Order', {
      description: 'By this ID Google Ads knows that a conversion came twice.',
      default: '{event.properties.order_id}',
    }),
    text('apiVersion', 'Version of the API', {
      description: 'Google ends each version after about a year.',
      default: 'v23',
      required: true,
    }),
  ],
});
