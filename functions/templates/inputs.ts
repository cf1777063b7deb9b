// The parts of which templates for services are made.
import type { InputSchema } from '../rules/definition.ts';
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

/** Hog that fails if the service does not accept the request whose answer is in `answer`. */
export const failIfRefused = (service: string) => `if (answer.status >= 300) {
  throw Error(f'${service} refuses the request with status {answer.status}: {answer.body}')
}
`;
