import { describe, expect, it } from 'vitest';
import type { LogEntry } from '$lib/api';
import { fits, lineOf, merged, visible } from './entries';

const entry = (id: number, more: Partial<LogEntry> = {}): LogEntry => ({
  id,
  time: '2026-03-03T12:00:00Z',
  level: 'info',
  category: 'http',
  message: 'POST /v1/messages',
  fields: {},
  ...more,
});
const ids = (entries: LogEntry[]) => entries.map(({ id }) => id);

describe('an entry fits', () => {
  const warning = entry(1, { level: 'warn', fields: { model: 'Qwen3', ms: 12.5 } });
  it('a level that matters as much, or less', () => {
    expect(fits(warning, { level: 'error' })).toBe(false);
    expect(fits(warning, { level: 'warn' })).toBe(true);
    expect(fits(warning, { level: 'trace' })).toBe(true);
  });
  it('its category', () => {
    expect(fits(warning, { level: 'trace', category: 'http' })).toBe(true);
    expect(fits(warning, { level: 'trace', category: 'mcp' })).toBe(false);
  });
  it.each(['messages', 'MODEL', 'qwen', '12.5', ''])('a search for %j', (search) => {
    expect(fits(warning, { level: 'trace', search })).toBe(true);
  });
  it('no search for what it does not hold', () => {
    expect(fits(warning, { level: 'trace', search: 'gemma' })).toBe(false);
  });
});

describe('a list', () => {
  it('is in order whatever the order within pages, each entry once', () => {
    const pages = [
      [entry(9), entry(7), entry(8)],
      [entry(4), entry(5), entry(7)],
    ];
    expect(ids(merged(pages, [entry(8), entry(9), entry(10), entry(12)]))).toEqual([
      4, 5, 7, 8, 9, 10, 12,
    ]);
  });
  it('may have no pages yet, or nothing new', () => {
    expect(ids(merged([], [entry(1)]))).toEqual([1]);
    expect(ids(merged([[entry(2), entry(1)]], []))).toEqual([1, 2]);
  });
});

describe('what is seen', () => {
  it('holds the view and some rows more', () => {
    expect(visible(1000, 260, 26, 500, 5)).toEqual({ first: 33, end: 54 });
  });
  it('ends where the list does', () => {
    expect(visible(0, 260, 26, 3)).toEqual({ first: 0, end: 3 });
    expect(visible(0, 260, 26, 0)).toEqual({ first: 0, end: 0 });
  });
  it('is nothing wrong when the list became shorter than the scroll position', () => {
    expect(visible(100_000, 260, 26, 20)).toEqual({ first: 20, end: 20 });
  });
});

it('is copied as one line', () => {
  expect(lineOf(entry(1, { level: 'warn', fields: { status: 404, path: '/x' } }))).toBe(
    '2026-03-03T12:00:00Z WARN  http POST /v1/messages status=404 path=/x',
  );
});
