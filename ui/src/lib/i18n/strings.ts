/**
 * The string files of all features: one file a feature and language, found by their place. English
 * texts that the program itself has are in files made from it.
 */
import type { Key } from './keys.gen';

export type { Key };

/** One string, or one per plural category (chosen by the parameter `count`). */
export type Text = string | { one?: string; other: string };

/** The strings of one language, by feature and key. */
export type Strings = Record<string, Record<string, Text>>;

/** The files of one language under the name of their feature; what no feature owns is `common`. */
export function byFeature(files: Record<string, Record<string, Text>>): Strings {
  const strings: Strings = {};
  for (const [path, table] of Object.entries(files)) {
    const feature = /\/features\/([^/]+)\//.exec(path)?.[1] ?? 'common';
    strings[feature] = { ...strings[feature], ...table };
  }
  return strings;
}

export const english = byFeature(
  import.meta.glob<Record<string, Text>>(
    [
      './strings/en.json',
      '../../features/*/strings/en.json',
      '../../features/*/strings/en.gen.json',
    ],
    { eager: true, import: 'default' },
  ),
);
