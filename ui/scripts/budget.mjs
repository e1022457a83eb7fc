// Fails when the JavaScript a first paint needs weighs more than the budget (gzip).
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const BUDGET_BYTES = 250_000;
const dist = new URL('../dist/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', dist), 'utf8'));

const gzipped = (file) => gzipSync(readFileSync(new URL(file, dist))).length;
const withImports = (key, seen = new Set()) => {
  if (seen.has(key)) return seen;
  seen.add(key);
  for (const next of manifest[key].imports ?? []) withImports(next, seen);
  return seen;
};
const bytes = (keys) => [...keys].reduce((sum, key) => sum + gzipped(manifest[key].file), 0);

// The entry, plus the heaviest screen with what it imports: no screen may be dearer than that.
const entry = withImports('index.html');
const screens = Object.keys(manifest).filter((key) =>
  /^src\/features\/[^/]+\/index\.svelte$/.test(key),
);
const rows = screens.map((key) => [key, bytes(new Set([...entry, ...withImports(key)]))]);
const worst = Math.max(bytes(entry), ...rows.map(([, size]) => size));

console.log(`entry ${(bytes(entry) / 1000).toFixed(1)} kB gzip`);
for (const [key, size] of rows) console.log(`  with ${key} ${(size / 1000).toFixed(1)} kB`);
if (worst > BUDGET_BYTES) {
  console.error(`initial JavaScript is ${worst} bytes gzip, more than ${BUDGET_BYTES}`);
  process.exit(1);
}
