import { instant } from '../fields.ts';

/** The fields by which a body names an interval. */
export const intervalChoice = {
  start_at: instant
    .nullish()
    .meta({ description: 'Where an interval begins. Default: the last that is over.' }),
  end_at: instant.nullish().meta({ description: 'Where it ends.' }),
};
