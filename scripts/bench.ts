// `npm run bench -- capture` runs bench/capture/run.ts, and so on for the other benchmarks. Arguments after the name go
// to the benchmark.
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';

const folder = path.resolve(import.meta.dirname, '../bench');
const fileOf = (name: string) => path.join(folder, name, 'run.ts');
const [name = '', ...options] = process.argv.slice(2);
const names = readdirSync(folder).filter((one) => existsSync(fileOf(one)));

if (names.includes(name)) {
  process.argv = [process.argv[0] as string, fileOf(name), ...options];
  await import(fileOf(name));
} else {
  const said = name === '' ? 'Which benchmark?' : `There is no benchmark "${name}".`;
  console.error(`${said} There are ${names.join(', ')}: npm run bench -- ${names[0]}`);
  process.exitCode = 1;
}
