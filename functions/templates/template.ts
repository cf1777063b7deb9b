import type { GivenFilters, GivenMapping, GivenMasking, InputSchema } from '../rules/definition.ts';
import type { FunctionTypeName } from '../rules/types.ts';

export const TEMPLATE_STATUSES = ['stable', 'beta', 'alpha', 'deprecated', 'hidden'] as const;

/** A function to begin with. */
export interface Template {
  id: string;
  type: FunctionTypeName;
  status: (typeof TEMPLATE_STATUSES)[number];
  name: string;
  description: string;
  category: string[];
  icon_url: string;
  hog: string;
  inputs_schema: InputSchema[];
  filters: GivenFilters | null;
  masking: GivenMasking | null;
  /** Whether a transformation removes personal data: if it fails, the event must not get through. */
  protects?: boolean;
  /** Mappings that a user can add. */
  mapping_templates: (GivenMapping & { name: string; include_by_default?: boolean })[] | null;
}
