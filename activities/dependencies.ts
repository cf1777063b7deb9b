import type { CaptureUpkeep } from '../capture/maintenance.ts';
import type { ProductDependencies } from '../products.ts';
import type { TenancyUpkeep } from '../tenancy/maintenance.ts';
import type { Product } from '../tenancy/product.ts';

/** What activities work with, those of each product among them. `worker/worker.ts` puts it together. */
export interface ActivityDependencies extends CaptureUpkeep, TenancyUpkeep, ProductDependencies {
  products: readonly Product<ActivityDependencies>[];
}
