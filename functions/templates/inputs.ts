// The parts of which templates for services are made.
import type { GivenMapping, InputSchema } from '../rules/definition.ts';
import { input, destination as stableDestination, type Written } from './parts.ts';
import type { Template } from './template.ts';

type More = Partial<Omit<InputSchema, 'key' | 'type' | 'label'>>;

const inputOf =
  (type: InputSchema['type'], always: More = {}) =>
  (key: string, label: string, more: More = {}): InputSchema =>
    input({ key, type, label, ...always, ...more });

export const text = inputOf('string');
export const dictionary = inputOf('dictionary');
export const flag = inputOf('boolean', { default: false });
/** A key or token. It is stored encrypted, and no log shows it. */
export const secret = inputOf('string', { required: true, secret: true });

/** One of some values; the first one is the default. */
export const choice = (key: string, label: string, labels: Record<string, string>, more: More = {}) =>
  inputOf('choice', {
    choices: Object.entries(labels).map(([value, one]) => ({ label: one, value })),
    default: Object.keys(labels)[0],
    required: true,
  })(key, label, more);

export const integration = (kind: string, key: string, label: string, description: string) =>
  inputOf('integration', { integration: kind, required: true })(key, label, { description });

/** The email address by which a service knows a person. */
export const email = text('email', 'Email address', {
  description: 'Whom the request is about. Events without an email address are skipped.',
  default: '{person.properties.email}',
  required: true,
});

/** Makes the template of a destination that nobody has used yet. `icon` names the service. */
export const destination = (icon: string, given: Written): Template => ({
  ...stableDestination(icon, given),
  status: 'beta',
});

/** Hog that skips an event without a value. */
export const skipWithout = (value: string, what: string) => `if (empty(${value})) {
  print('The event has no ${what}. It is skipped.')
  return
}
`;

/** Hog that fails if a service does not accept the request whose answer is in `answer`. `host` is where it went. */
export const failIfRefused = (host: string) => `if (answer.status >= 300) {
  throw Error(f'Error from ${host} (status {answer.status}): {answer.body}')
}
`;

/** Hog that fails with words of its own if the request whose answer is in `answer` is refused. */
export const failWith = (words: string) => `if (answer.status >= 300) {
  throw Error(f'${words}: {answer.status}: {answer.body}')
}
`;

/** A function of programs that chooses what is sent: values of its own, and those of a whole if that is asked for. */
export const CHOSEN = `// Nothing empty is sent, and of the whole nothing that begins with $.
fun chosen(isAll, whole, own) {
  let kept := {}
  if (isAll) {
    for (let key, value in whole ?? {}) {
      if (notEmpty(value) and not startsWith(key, '$')) { kept[key] := value }
    }
  }
  for (let key, value in own ?? {}) {
    if (notEmpty(value)) { kept[key] := value }
  }
  return kept
}
`;

export const allOfPerson = flag('include_all_properties', 'Include all properties', {
  description:
    'Sends all properties of the person, except those that begin with $. The values below win over them.',
});
export const allOfEvent = flag('include_all_properties', 'Include all properties', {
  description:
    'Sends all properties of the event, except those that begin with $. The values below win over them.',
});

/** A bearer token of a service that has no kind of integration of its own. */
export const bearerToken = (key: string, label: string, host: string) =>
  integration('bearer', key, label, `An integration of the kind bearer, whose token may go to ${host}.`);

/** Tells the runtime that 404 is an answer like others: the program asks whether something exists. */
export const expects404 = inputOf('non_failure_status_codes', {
  required: true,
  hidden: true,
  default: [404],
})('non_failure_status_codes', 'Status codes that are no failures', {
  description: 'What the service answers if it does not know something yet.',
});

type Mapped = GivenMapping & { name: string; include_by_default?: boolean };

/** A mapping that is there from the beginning: events of one name become an event of the service. */
export const mapping = (name: string, event: string, inputs: InputSchema[]): Mapped => ({
  ...{ name, include_by_default: true, inputs_schema: inputs },
  filters: { events: [{ id: event, name: event === '$pageview' ? 'Pageview' : event, type: 'events' }] },
});

/** A mapping that is there from the beginning: all events for which an expression of HogQL is true. */
export const mappingOf = (name: string, condition: string, inputs: InputSchema[]): Mapped => ({
  ...{ name, include_by_default: true, inputs_schema: inputs },
  filters: {
    events: [
      {
        ...{ id: null, name: 'All events', type: 'events' },
        properties: [{ key: condition, type: 'hogql' }],
      },
    ],
  },
});

export const eventType = (service: string, value: string) =>
  text('eventType', 'Event', {
    description: `The name of the event at ${service}.`,
    default: value,
    required: true,
  });

/** What an event is worth. */
export const MONEY = 'event.properties.value ?? event.properties.revenue ?? event.properties.price';
