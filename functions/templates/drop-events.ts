import type { Template } from './template.ts';

export const DROP_EVENTS: Template = {
  id: 'template-drop-events',
  type: 'transformation',
  status: 'stable',
  name: 'Drop events',
  description: 'Drops the events that its filters choose. They are not stored.',
  category: ['Custom'],
  icon_url: '/static/services/transformation.svg',
  hog: `// The filters decide which events come here.
return null
`,
  inputs_schema: [],
  filters: null,
  masking: null,
  mapping_templates: null,
};
