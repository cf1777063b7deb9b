// Services that watch how customers use a product.
import {
  allOfPerson,
  CHOSEN,
  choice,
  destination,
  dictionary,
  failIfRefused,
  flag,
  mappingOf,
  secret,
  skipWithout,
  text,
} from './inputs.ts';

const userId = (more: object = {}) =>
  text('userId', 'User ID', {
    description: 'The ID of the user there.',
    default: '{event.distinct_id}',
    ...more,
  });
const traits = (key: string, label: string, more = '') =>
  dictionary(key, label, { description: `Further values, by their names there.${more}`, default: {} });
const NOT_SENT = ' Names with geoip, ip or current_url are not sent.';

export const ACCOIL = destination('accoil', {
  id: 'template-accoil',
  name: 'Accoil',
  description: 'Sends events, users and accounts to Accoil, which scores how accounts use a product.',
  category: ['Analytics'],
  hog: `${CHOSEN}let types := {
  '$pageview': 'page', '$screen': 'screen', '$identify': 'identify', '$set': 'identify', '$groupidentify': 'group'
}
let type := types[event.event] ?? 'track'
if (type = 'track' and startsWith(event.event, '$')) { return }
// Accoil must not learn where somebody is.
fun allowed(values) {
  let kept := {}
  for (let key, value in values) {
    let name := lower(key)
    if (not match(name, '(^|[^a-z])ip([^a-z]|$)') and position(name, 'geoip') = 0 and position(name, 'current_url') = 0) {
      kept[key] := value
    }
  }
  return kept
}
let call := chosen(false, null, {
  'userId': empty(inputs.userId) ? null : toString(inputs.userId),
  'anonymousId': empty(inputs.anonymousId) ? null : toString(inputs.anonymousId)
})
call.type := type
call.timestamp := toString(inputs.timestamp)
if (type = 'track') {
  call.event := toString(inputs.event ?? event.event)
} else if (type in ['page', 'screen']) {
${'  '}${skipWithout('inputs.name', 'name of a page').replaceAll('\n', '\n  ').trimEnd()}
  call.name := toString(inputs.name)
} else if (type = 'identify') {
  call.traits := allowed(chosen(true, inputs.user_traits_mapping, {
    'email': inputs.email,
    'name': inputs.user_name,
    'role': inputs.role,
    'accountStatus': inputs.accountStatus,
    'createdAt': inputs.createdAt
  }))
} else {
${'  '}${skipWithout('inputs.groupId', 'ID of an account').replaceAll('\n', '\n  ').trimEnd()}
  call.groupId := toString(inputs.groupId)
  call.traits := allowed(chosen(true, inputs.group_traits_mapping, {
    'name': inputs.group_name,
    'createdAt': inputs.group_createdAt,
    'status': inputs.group_status,
    'plan': inputs.group_plan,
    'mrr': toFloat(inputs.group_mrr)
  }))
}
// Keys of the test system begin with stg_, which is no part of them there.
let isTest := startsWith(lower(inputs.apiKey), 'stg_')
let key := isTest ? substring(inputs.apiKey, 5, length(inputs.apiKey)) : inputs.apiKey
let answer := fetch(isTest ? 'https://instaging.accoil.com/segment' : 'https://in.accoil.com/segment', {
  'method': 'POST',
  'headers': {'Authorization': f'Basic {base64Encode(f'{key}:')}', 'Content-Type': 'application/json'},
  'body': call
})
${failIfRefused('Accoil')}`,
  inputs_schema: [
    secret('apiKey', 'API key', { description: 'The API key in the settings of your account of Accoil.' }),
    text('timestamp', 'Time of the event', { default: '{event.timestamp}', required: true }),
  ],
  mapping_templates: [
    mappingOf('Track Calls', "event not in ('$identify', '$set', '$pageview', '$screen', '$groupidentify')", [
      userId({ required: true }),
      text('event', 'Name of the event', { default: '{event.event}' }),
    ]),
    mappingOf('Page Calls', "event in ('$pageview')", [
      userId(),
      text('name', 'Name of the page', { default: '{event.properties.title ?? event.properties.$pathname}' }),
    ]),
    mappingOf('Screen Calls', "event in ('$screen')", [
      userId(),
      text('name', 'Name of the screen', { default: '{event.properties.$screen_name}' }),
    ]),
    mappingOf('Identify Calls', "event in ('$identify', '$set')", [
      userId({ required: true }),
      text('email', 'Email address', { default: '{person.properties.email}' }),
      text('user_name', 'Name', { default: '{person.properties.name}' }),
      text('role', 'Role', { default: '{person.properties.role}' }),
      text('accountStatus', 'Status of the account', { default: '{person.properties.account_status}' }),
      text('createdAt', 'Created at', { default: '{person.properties.created_at}' }),
      traits('user_traits_mapping', 'More about the user', NOT_SENT),
    ]),
    mappingOf('Group Calls', "event in ('$groupidentify')", [
      userId(),
      text('anonymousId', 'Anonymous ID', { default: '{event.properties.$anon_distinct_id}' }),
      text('groupId', 'ID of the account', {
        description: 'Events without it are skipped.',
        default: '{event.properties.$group_key}',
      }),
      text('group_name', 'Name', { default: '{event.properties.$group_set.name}' }),
      text('group_plan', 'Plan', { default: '{event.properties.$group_set.plan}' }),
      text('group_mrr', 'Monthly revenue', { default: '{event.properties.$group_set.mrr}' }),
      text('group_status', 'Status', { default: '{event.properties.$group_set.status}' }),
      text('group_createdAt', 'Created at', { default: '{event.properties.$group_set.created_at}' }),
      traits('group_traits_mapping', 'More about the account', NOT_SENT),
    ]),
  ],
});

export const KLIME = destination('klime', {
  id: 'template-klime',
  name: 'Klime',
  description: 'Sends events, users and accounts to Klime.',
  category: ['Analytics'],
  hog: `${CHOSEN}let action := inputs.action
if (action = 'automatic') {
  let actions := {'$identify': 'identify', '$set': 'identify', '$groupidentify': 'group'}
  action := actions[event.event] ?? 'track'
}
let call := {
  'type': action,
  'messageId': event.uuid,
  'timestamp': event.timestamp,
  'context': {'library': {'name': 'sluice', 'version': '1.0.0'}}
}
if (notEmpty(inputs.userId)) { call.userId := toString(inputs.userId) }
let about := {}
if (action = 'track') {
  call.event := event.event
  if (notEmpty(inputs.groupId)) { call.groupId := toString(inputs.groupId) }
  about := chosen(true, event.properties, inputs.properties)
  if (notEmpty(keys(about))) { call.properties := about }
} else if (action = 'identify') {
  ${skipWithout('inputs.userId', 'user ID').replaceAll('\n', '\n  ').trimEnd()}
  about := chosen(inputs.include_all_properties, person.properties, inputs.userTraits)
  if (notEmpty(keys(about))) { call.traits := about }
} else {
  let groupId := event.event = '$groupidentify' ? (event.properties.$group_key ?? inputs.groupId) : inputs.groupId
  ${skipWithout('groupId', 'group ID').replaceAll('\n', '\n  ').trimEnd()}
  call.groupId := toString(groupId)
  about := chosen(true, event.properties.$group_set, inputs.properties)
  if (notEmpty(keys(about))) { call.traits := about }
}
let answer := fetch('https://i.klime.com/v1/batch', {
  'method': 'POST',
  'headers': {'Authorization': f'Bearer {inputs.writeKey}', 'Content-Type': 'application/json'},
  'body': {'batch': [call]}
})
${failIfRefused('i.klime.com')}`,
  inputs_schema: [
    secret('writeKey', 'Write key', { description: 'The write key of your project in Klime.' }),
    choice(
      'action',
      'What is sent',
      { automatic: 'What the event is', track: 'An event', identify: 'A user', group: 'An account' },
      { description: 'By itself, $identify and $set become users, and $groupidentify becomes an account.' },
    ),
    userId({ description: 'The ID of the user in Klime. Users without it are skipped.' }),
    text('groupId', 'Group ID', {
      description: 'The ID of the account in Klime. Accounts without it are skipped.',
      default: '{event.properties.$group_0}',
    }),
    allOfPerson,
    dictionary('userTraits', 'About the user', {
      default: { email: '{person.properties.email}', name: '{person.properties.name}' },
    }),
    traits('properties', 'More about the event or account'),
  ],
});

export const APPCUES = destination('appcues', {
  id: 'template-appcues',
  name: 'Appcues',
  description: 'Sends events and properties of persons to Appcues, which shows messages and tours by them.',
  category: ['User Engagement Platforms'],
  hog: `${CHOSEN}${skipWithout('inputs.userId', 'user ID')}let host := inputs.region = 'EU' ? 'api.eu.appcues.com' : 'api.appcues.com'
let isUser := event.event in ['$identify', '$set']
let body := {}
if (isUser) {
  body := chosen(inputs.include_all_properties, person.properties, inputs.profileProperties)
  if (empty(keys(body))) {
    print('Nothing is known of the user. It is skipped.')
    return
  }
} else {
  body := {'name': inputs.eventName ?? event.event, 'timestamp': event.timestamp}
  if (notEmpty(inputs.groupId)) { body.group_id := toString(inputs.groupId) }
  let attributes := chosen(inputs.include_all_properties, event.properties, inputs.attributes)
  if (notEmpty(keys(attributes))) { body.attributes := attributes }
}
let user := f'/v2/accounts/{encodeURLComponent(inputs.accountId)}/users/{encodeURLComponent(toString(inputs.userId))}'
let answer := fetch(f'https://{host}{user}/{isUser ? 'profile' : 'events'}', {
  'method': isUser ? 'PATCH' : 'POST',
  'headers': {
    'Authorization': f'Basic {base64Encode(f'{inputs.apiKey}:{inputs.apiSecret}')}',
    'Content-Type': 'application/json'
  },
  'body': body
})
${failIfRefused('Appcues API')}`,
  inputs_schema: [
    text('accountId', 'Account ID', {
      description: 'The number of your account. The settings of Appcues show it.',
      required: true,
    }),
    secret('apiKey', 'API key', { description: 'An API key of Appcues Studio.' }),
    secret('apiSecret', 'API secret', { description: 'The secret that belongs to the key.' }),
    choice('region', 'Region', { US: 'US', EU: 'EU' }, { description: 'Where Appcues keeps your data.' }),
    userId({ description: 'The ID of the user in Appcues. Events without it are skipped.', required: true }),
    flag('include_all_properties', 'Include all properties', {
      description:
        'Sends all properties of the event, or of the person, except those that begin with $. The values below win over them.',
    }),
  ],
  mapping_templates: [
    mappingOf('Track Calls', "event not in ('$identify', '$set', '$groupidentify')", [
      text('eventName', 'Name of the event', { default: '{event.event}', required: true }),
      text('groupId', 'Group ID', { description: 'The account that the event belongs to.', default: '' }),
      traits('attributes', 'About the event'),
    ]),
    mappingOf('Identify Calls', "event in ('$identify', '$set')", [
      dictionary('profileProperties', 'About the user', {
        description: 'What Appcues learns about the user.',
        default: {
          email: '{person.properties.email}',
          first_name: '{person.properties.first_name}',
          last_name: '{person.properties.last_name}',
        },
      }),
    ]),
  ],
});
