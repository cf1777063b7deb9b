import { instant } from '../fields.ts';

/** The fields by which a body names an interval. The description of each route says which interval is the default. */
export const intervalChoice = {
  start_at: instant.nullish().meta({ description: 'Chooses the interval that begins at this time.' }),
  end_at: instant.nullish().meta({ description: 'Chooses the interval that ends at this time.' }),
};
