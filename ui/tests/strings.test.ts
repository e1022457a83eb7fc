// @vitest-environment node
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'svelte/compiler';
import { describe, expect, it } from 'vitest';
import { english, type Text } from '../src/lib/i18n/strings';
import { chinese } from '../src/lib/i18n/simplified-chinese';

type Table = Record<string, Text>;
const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(svelte|ts)$/.test(name) && !/\.(test|gen)\.ts$/.test(name))
  .map((name) => ({ name, text: readFileSync(join('src', name), 'utf8') }));
const code = sources.map(({ text }) => text).join('\n');

const params = (text: Text): string[] => {
  const forms = typeof text === 'string' ? [text] : Object.values(text);
  const names = forms.flatMap((form) => [...form.matchAll(/\{(\w+)\}/g)].map((m) => m[1] ?? ''));
  return [...new Set(names)].sort();
};

describe.each(Object.entries(english))('strings of %s', (feature, en) => {
  const zh: Table = chinese[feature] ?? {};

  it('are the same in both languages', () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
  });

  it.each(Object.keys(en))('%s has the same parameters', (key) => {
    expect(params(zh[key] ?? '')).toEqual(params(en[key] ?? ''));
  });

  it.each(Object.keys(en))('%s is used', (key) => {
    const whole = `${feature}.${key}`;
    // Either the key itself, or a template that names its beginning: `chat.state.${…}`.
    const isNamed = [`'${whole}'`, `"${whole}"`, `\`${whole}\``].some((k) => code.includes(k));
    const heads = [...whole.matchAll(/[._A-Z]/g)].map((m) => whole.slice(0, m.index + 1));
    const isBuilt = heads.some(
      (head) =>
        head.length > feature.length + 1 &&
        (code.includes(`\`${head}\${`) || code.includes(`\`${head.slice(0, -1)}\${`)),
    );
    expect(isNamed || isBuilt).toBe(true);
  });
});

const READ_ALOUD = new Set(['title', 'label', 'placeholder', 'aria-label', 'alt', 'description']);
interface Node {
  type: string;
  [key: string]: unknown;
}

/** Literal words a person would read in a component: text nodes, and attributes that are read out. */
function literals(source: string): string[] {
  const found: string[] = [];
  const hasWords = (text: unknown): text is string =>
    typeof text === 'string' && /\p{L}{2}/u.test(text);
  const visit = (value: unknown, isQuiet: boolean, isUntranslated: boolean): void => {
    if (Array.isArray(value)) value.forEach((item) => visit(item, isQuiet, isUntranslated));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
    const node = value as Node;
    if (node.type === 'Attribute') {
      const parts = Array.isArray(node.value) ? (node.value as Node[]) : [];
      if (READ_ALOUD.has(String(node.name)) && !isUntranslated)
        for (const part of parts)
          if (part.type === 'Text' && hasWords(part.data)) found.push(part.data);
      // Snippets and markup may stand inside expressions of attributes.
      visit(node.value, true, isUntranslated);
      return;
    }
    if (node.type === 'Text' && !isQuiet && !isUntranslated && hasWords(node.data))
      found.push(node.data.trim());
    // Names, keys and code are the same in every language: mark them `translate="no"`.
    const attributes = (Array.isArray(node.attributes) ? node.attributes : []) as Node[];
    const isMarked =
      node.name === 'kbd' || attributes.some((a) => a.name === 'translate' || a.name === 'lang');
    for (const [key, child] of Object.entries(node))
      if (key !== 'parent') visit(child, isQuiet, isUntranslated || isMarked);
  };
  visit(parse(source, { modern: true }).fragment, false, false);
  return found;
}

describe('literal text', () => {
  it('is found in text and in attributes that are read out', () => {
    expect(literals('<p>Hello</p>{#if x}<b title="Some words" class="ab">{y}</b>{/if}')).toEqual([
      'Hello',
      'Some words',
    ]);
    expect(literals('<input placeholder="npx" translate="no" />')).toEqual([]);
    expect(literals('<code translate="no">curl</code><p class="text-sm">· {x}</p>')).toEqual([]);
  });

  it.each(sources.filter(({ name }) => name.endsWith('.svelte')))('is not in $name', ({ text }) => {
    expect(literals(text)).toEqual([]);
  });
});
