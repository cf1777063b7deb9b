import { input, NAMES_OF, transformation } from './parts.ts';

/** Hog that keeps a part of the events. `isRandom` says whether each event is decided by itself. */
const program = (isRandom: string) => `${NAMES_OF}let names := namesOf(inputs.triggeringEvents)
if (notEmpty(names) and not has(names, event.event)) { return event }
let percentage := toFloat(inputs.percentage)
if (percentage = null or percentage < 0 or percentage > 100) {
  throw Error('Percentage must be a number between 0 and 100.')
}
if (percentage = 100) { return event }
let place := randomFloat()
if (not (${isRandom})) {
  // The first 52 bits of a hash are a place between 0 and 1 that a distinct_id keeps.
  let hash := sha256Hex(toString(event.distinct_id))
  place := 0.0
  for (let index := 13; index >= 1; index := index - 1) {
    place := (place + position('0123456789abcdef', substring(hash, index, 1)) - 1) / 16
  }
}
return place < percentage / 100 ? event : null
`;
const triggeringEvents = input({
  key: 'triggeringEvents',
  label: 'Events',
  description: 'Names of the events that are sampled, with commas between them. Empty: all are.',
  default: '',
});

export const DOWNSAMPLING = transformation({
  id: 'template-downsampling',
  name: 'Downsampling',
  description: 'Keeps a part of the events. The events of a distinct_id are all kept or all dropped.',
  category: ['Transformation'],
  hog: program('inputs.randomSampling'),
  inputs_schema: [
    input({
      key: 'percentage',
      type: 'number',
      label: 'Percentage',
      description: 'How many of 100 are kept, from 0 to 100.',
      default: 100,
      required: true,
    }),
    input({
      key: 'randomSampling',
      type: 'boolean',
      label: 'Decide on each event by itself',
      description: 'Otherwise the distinct_id decides.',
      default: false,
    }),
    triggeringEvents,
  ],
});

export const DOWNSAMPLING_PLUGIN = transformation({
  id: 'plugin-downsampling-plugin',
  name: 'Downsampling (older)',
  description: 'The same as Downsampling, with the inputs of the older plugin.',
  category: ['Transformation'],
  hog: program("inputs.samplingMethod = 'Random sampling'"),
  inputs_schema: [
    input({
      key: 'percentage',
      label: 'Percentage',
      description: 'How many of 100 are kept, from 0 to 100.',
      default: '100',
      templating: false,
    }),
    input({
      key: 'samplingMethod',
      type: 'choice',
      label: 'Method',
      description: 'What decides: the distinct_id, or chance.',
      choices: ['Distinct ID aware sampling', 'Random sampling'].map((value) => ({ label: value, value })),
      default: 'Distinct ID aware sampling',
    }),
    triggeringEvents,
  ],
});
