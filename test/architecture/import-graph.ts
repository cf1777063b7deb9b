import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from '@swc/core';

export interface Import {
  /** Path of the importing file, from the root, with `/`. */
  file: string;
  /** A file of ours (path from the root) or the name of a package (`pg`, `node:fs`, `@scope/name`). */
  target: string;
  own: boolean;
  typeOnly: boolean;
}

const SKIPPED = new Set(['node_modules', '.git', '.sluice', 'coverage', 'fixtures']);

export function sourceFiles(root: string, folder = ''): string[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = folder ? `${folder}/${entry.name}` : entry.name;
    if (entry.isDirectory()) return SKIPPED.has(entry.name) ? [] : sourceFiles(root, name);
    return /\.(ts|mjs|js)$/.test(entry.name) && !entry.name.endsWith('.d.ts') ? [name] : [];
  });
}

function packageName(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier;
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
}

/** Everything one file imports, statically or by `import('literal')`. */
export function importsOf(root: string, file: string): Import[] {
  const source = readFileSync(path.join(root, file), 'utf8');
  const module = parseSync(source, { syntax: 'typescript', target: 'es2024' });
  const found: Import[] = [];
  const add = (specifier: string, typeOnly: boolean) => {
    const own = specifier.startsWith('.');
    const target = own
      ? path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier))
      : packageName(specifier);
    found.push({ file, target, own, typeOnly });
  };
  for (const item of module.body) {
    if (item.type === 'ImportDeclaration') {
      const allTypes =
        item.specifiers.length > 0 &&
        item.specifiers.every((one) => one.type === 'ImportSpecifier' && one.isTypeOnly);
      add(item.source.value, item.typeOnly || allTypes);
    } else if (item.type === 'ExportNamedDeclaration' && item.source) {
      add(item.source.value, Boolean((item as { typeOnly?: boolean }).typeOnly));
    } else if (item.type === 'ExportAllDeclaration') {
      add(item.source.value, Boolean((item as { typeOnly?: boolean }).typeOnly));
    }
  }
  for (const match of source.matchAll(/\bimport\(\s*['"]([^'"]+)['"]/g)) add(match[1] as string, false);
  return found;
}

export function importGraph(root: string): Import[] {
  return sourceFiles(root).flatMap((file) => importsOf(root, file));
}
