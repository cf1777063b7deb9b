import type { CaptureUpkeep } from '../capture/maintenance.ts';
import type { ProductDependencies } from '../products.ts';
import type { TenancyUpkeep } from '../tenancy/maintenance.ts';
import type { Product } from '../tenancy/product.ts';

/** What all activities need, including those of the products. `worker/worker.ts` puts it together. */
export interface ActivityDependencies extends CaptureUpkeep, TenancyUpkeep, ProductDependencies {
  products: readonly Product<ActivityDependencies>[];
}
