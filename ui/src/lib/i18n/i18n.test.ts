import { afterEach, expect, it } from 'vitest';
import { formatBytes, formatCompact, formatDuration, formatRelative } from './format';
import { languageFor, locale, render, setLanguage, t } from './index.svelte';

afterEach(() => setLanguage('en'));

it('fills in parameters and leaves unknown ones visible', () => {
  expect(render('{a} of {b}, {c}', { a: 1234, b: 'x' }, 'en')).toBe('1,234 of x, {c}');
});

it('chooses plural forms by the rules of the language', () => {
  const text = { one: '{count} file', other: '{count} files' };
  expect([0, 1, 2].map((count) => render(text, { count }, 'en'))).toEqual([
    '0 files',
    '1 file',
    '2 files',
  ]);
  expect(render({ other: '{count} 个文件' }, { count: 1 }, 'zh-Hans')).toBe('1 个文件');
});

it('changes the language of strings, formats and the document', async () => {
  expect(t('common.cancel')).toBe('Cancel');
  await setLanguage('zh-Hans');
  expect(t('common.cancel')).toBe('取消');
  expect(document.documentElement.lang).toBe('zh-Hans');
});

it('lets the last of two overlapping changes win', async () => {
  await Promise.all([setLanguage('zh-Hans'), setLanguage('en')]);
  expect(locale.current).toBe('en');
});

it.each([
  ['zh-Hans', ['en'], 'zh-Hans'],
  ['system', ['de-DE', 'zh-CN', 'en'], 'zh-Hans'],
  ['system', ['en-GB', 'zh-CN'], 'en'],
  ['system', ['fr'], 'en'],
  ['system', ['C', 'zh-CN'], 'zh-Hans'],
] as const)('setting %s with %j is %s', (setting, preferred, language) => {
  expect(languageFor(setting, preferred)).toBe(language);
});

it('writes sizes in decimal units', () => {
  expect([0, 999, 1000, 1_500_000, 4_321_000_000, 123_000_000_000].map(formatBytes)).toEqual([
    '0B',
    '999B',
    '1 kB',
    '1.5 MB',
    '4.3 GB',
    '123 GB',
  ]);
});

it('writes lengths of time in at most two units', () => {
  expect([0.42, 3.21, 42, 250, 7500, 260_000].map(formatDuration)).toEqual([
    '420ms',
    '3.2s',
    '42s',
    '4m 10s',
    '2h 5m',
    '3d',
  ]);
});

it('writes counts short and times relative', () => {
  expect([1_700_000_000, 350_000_000, 999].map(formatCompact)).toEqual(['1.7B', '350M', '999']);
  const now = new Date('2026-03-02T12:00:00Z');
  expect(formatRelative('2026-03-02T11:55:00Z', now)).toBe('5 minutes ago');
  expect(formatRelative('2026-03-01T11:55:00Z', now)).toBe('yesterday');
});
