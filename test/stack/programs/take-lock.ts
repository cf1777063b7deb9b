// Tries to take a lock, says whether it has it, and keeps it until the channel closes.
import { tryLock } from '../../../stack/file-lock.ts';

process.on('message', (file) => {
  process.send?.({ taken: tryLock(file as string).lock !== undefined });
});
process.once('disconnect', () => process.exit());
process.send?.('started');
