/** The string files of all features: one file a feature and language, found by their place. */
import type { Key } from './keys.gen';

export type { Key };

/** One string, or one per plural category (chosen by the parameter `count`). */
export type Text = string | { one?: string; other: string };

/** The strings of one language, by feature and key. */
export type Strings = Record<string, Record<string, Text>>;

/** The files of one language under the name of their feature; what no feature owns is `common`. */
export function byFeature(files: Record<string, Record<string, Text>>): Strings {
  const feature = (path: string) => /\/features\/([^/]+)\//.exec(path)?.[1] ?? 'common';
  return Object.fromEntries(Object.entries(files).map(([path, table]) => [feature(path), table]));
}

export const english = byFeature(
  import.meta.glob<Record<string, Text>>(
    ['./strings/en.json', '../../features/*/strings/en.json'],
    { eager: true, import: 'default' },
  ),
);
