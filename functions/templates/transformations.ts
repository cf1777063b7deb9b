import { input, transformation } from './parts.ts';

export const BLANK_TRANSFORMATION = transformation({
  id: 'template-blank-transformation',
  name: 'Custom transformation',
  description: 'Begins with a program that changes nothing. Write your own.',
  category: ['Custom'],
  hog: `// The event that this program returns is stored. Null drops it.
let changed := event
// changed.properties.example := 'value'
return changed
`,
  inputs_schema: [],
});

export const GEOIP = transformation({
  id: 'template-geoip',
  name: 'GeoIP',
  description:
    'Adds the location of $ip to events and their persons. Needs a database of locations. Events with $geoip_disable ' +
    'stay as they are.',
  category: ['Transformation'],
  hog: `if (event.properties.$geoip_disable or empty(event.properties.$ip)) {
  return event
}
let found := geoipLookup(event.properties.$ip)
if (found = null) {
  return event
}
let place := {
  'city_name': found.city.names.en,
  'country_name': found.country.names.en,
  'country_code': found.country.iso_code,
  'continent_name': found.continent.names.en,
  'continent_code': found.continent.code,
  'postal_code': found.postal.code,
  'latitude': found.location.latitude,
  'longitude': found.location.longitude,
  'accuracy_radius': found.location.accuracy_radius,
  'time_zone': found.location.time_zone,
  'subdivision_1_code': found.subdivisions[1].iso_code,
  'subdivision_1_name': found.subdivisions[1].names.en,
  'subdivision_2_code': found.subdivisions[2].iso_code,
  'subdivision_2_name': found.subdivisions[2].names.en
}
let changed := event
changed.properties['$set'] := changed.properties['$set'] ?? {}
changed.properties['$set_once'] := changed.properties['$set_once'] ?? {}
for (let name, value in place) {
  if (value != null) {
    changed.properties[f'$geoip_{name}'] := value
  }
  // The person moves as a whole: parts of the last place must not stay.
  changed.properties['$set'][f'$geoip_{name}'] := value
  changed.properties['$set_once'][f'$initial_geoip_{name}'] := value
}
return changed
`,
  inputs_schema: [],
});

export const IP_ANONYMIZATION = transformation({
  id: 'template-ip-anonymization',
  protects: true,
  name: 'IP anonymization',
  description:
    'Sets the last part of $ip to 0: the last number of an IPv4 address, all but the first 48 bits of an IPv6 address. ' +
    'What is no address is removed.',
  category: ['Transformation'],
  hog: `let ip := event.properties.$ip
if (ip = null) {
  return event
}
// An IPv4 address may stand at the end of an IPv6 address.
let v4 := replaceOne(lower(trim(toString(ip))), '::ffff:', '')
let changed := event
if (match(v4, '^[0-9]+[.][0-9]+[.][0-9]+[.][0-9]+$')) {
  let parts := splitByString('.', v4)
  changed.properties.$ip := f'{parts[1]}.{parts[2]}.{parts[3]}.0'
  return changed
}
let text := splitByString('%', lower(trim(toString(ip))))[1]
if (not match(text, '^[0-9a-f:]*:[0-9a-f:]*$')) {
  changed.properties.$ip := null
  return changed
}
// Two colons stand for as many zeros as are missing.
let halves := splitByString('::', text)
let front := halves[1] = '' ? [] : splitByString(':', halves[1])
let back := length(halves) < 2 ? [] : (halves[2] = '' ? [] : splitByString(':', halves[2]))
while (length(front) + length(back) < 8) { front := arrayPushBack(front, '0') }
for (let part in back) { front := arrayPushBack(front, part) }
changed.properties.$ip := f'{front[1]}:{front[2]}:{front[3]}::'
return changed
`,
  inputs_schema: [],
});

export const REMOVE_NULL_PROPERTIES = transformation({
  id: 'template-remove-null-properties',
  name: 'Remove null properties',
  description: 'Removes properties that are null, also within dictionaries and lists, three levels deep.',
  category: ['Transformation'],
  hog: `let changed := event
changed.properties := cleanNullValues(event.properties)
return changed
`,
  inputs_schema: [],
});

export const BOT_DETECTION = transformation({
  id: 'template-bot-detection',
  name: 'Filter bot events',
  description:
    'Drops or marks events of bots. It knows bots by their user agents and by the networks of large crawlers. Events of ' +
    'libraries for servers are only compared with your own lists.',
  category: ['Transformation'],
  hog: `let agent := event.properties[inputs.userAgent]
let ip := event.properties.$ip
let isBot := false
// Libraries of servers send agents and addresses like those of bots. The lists are about browsers.
let library := event.properties['$lib']
let isBrowser := empty(library) or library in ['web', 'js']
if (empty(agent)) {
  isBot := inputs.keepUndefinedUseragent = 'No'
} else if (isBrowser and inputs.filterKnownBotUserAgents) {
  isBot := isKnownBotUserAgent(agent)
}
if (not isBot and isBrowser and inputs.filterKnownBotIps and notEmpty(ip)) { isBot := isKnownBotIp(ip) }
for (let pattern in splitByString(',', inputs.customBotPatterns ?? '')) {
  if (trim(pattern) != '' and notEmpty(agent) and position(lower(toString(agent)), lower(trim(pattern))) > 0) {
    isBot := true
  }
}
for (let network in splitByString(',', inputs.customIpPrefixes ?? '')) {
  if (not isBot and trim(network) != '' and notEmpty(ip)) { isBot := isIPAddressInRange(ip, trim(network)) }
}
if (not isBot) {
  return event
}
if (inputs.action = 'mark') {
  let changed := event
  changed.properties['$is_bot'] := true
  return changed
}
return null
`,
  inputs_schema: [
    input({
      key: 'action',
      type: 'choice',
      label: 'What happens to events of bots',
      choices: [
        { label: 'They are dropped', value: 'drop' },
        { label: 'They get the property $is_bot', value: 'mark' },
      ],
      default: 'drop',
    }),
    input({
      key: 'userAgent',
      label: 'Property with the user agent',
      description: 'The name of the event property.',
      default: '$raw_user_agent',
      required: true,
    }),
    input({
      key: 'filterKnownBotUserAgents',
      type: 'boolean',
      label: 'Find known bots by their user agents',
      default: true,
    }),
    input({
      key: 'filterKnownBotIps',
      type: 'boolean',
      label: 'Find known bots by their addresses',
      default: true,
    }),
    input({
      key: 'customBotPatterns',
      label: 'Further user agents',
      description: 'Parts of user agents, with commas between them. Case does not matter.',
      default: '',
    }),
    input({
      key: 'customIpPrefixes',
      label: 'Further networks',
      description: 'Networks such as 198.51.100.0/24, with commas between them.',
      default: '',
    }),
    input({
      key: 'keepUndefinedUseragent',
      type: 'choice',
      label: 'Keep events without a user agent',
      description: 'Servers often send none.',
      choices: ['Yes', 'No'].map((value) => ({ label: value, value })),
      default: 'Yes',
    }),
  ],
});
