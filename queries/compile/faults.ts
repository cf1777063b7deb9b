import { SourceError } from '../../hog/errors.ts';
import { FilterError } from '../../properties/index.ts';
import { QueryError } from '../rules/request.ts';

/** Does a part of the work. What is wrong with it becomes an error that names the field. */
export async function of<T>(field: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SourceError && error.code !== 'busy') {
      throw new QueryError(field, error.message, error.excerpt);
    }
    if (error instanceof FilterError) {
      throw new QueryError(
        error.path ? `${field}__${error.path.replaceAll('.', '__')}` : field,
        error.message,
      );
    }
    throw error;
  }
}
