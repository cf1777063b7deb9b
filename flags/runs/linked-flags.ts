// Runs of other products have flags that belong to what they change.
export { changeLinkedFlag } from '../commands/linked-flags.ts';
