import { expect, it } from 'vitest';
import { ageOf, byAge } from './days';

const now = new Date(2026, 2, 10, 0, 30);

it.each([
  [new Date(2026, 2, 10, 0, 5), 'today'],
  [new Date(2026, 2, 9, 23, 59), 'yesterday'],
  [new Date(2026, 2, 8, 12), 'week'],
  [new Date(2026, 2, 3, 0, 1), 'week'],
  [new Date(2026, 2, 2, 23), 'month'],
  [new Date(2026, 1, 8, 1), 'month'],
  [new Date(2026, 1, 7, 1), 'older'],
  [new Date(2026, 2, 11), 'today'],
])('%s is of %s', (time, age) => {
  expect(ageOf(time.toISOString(), now)).toBe(age);
});

it('groups in order and leaves out empty groups', () => {
  const item = (id: string, time: Date) => ({
    id,
    title: id,
    created_at: '',
    updated_at: time.toISOString(),
    model: null,
    message_count: 0,
    preview: '',
  });
  const groups = byAge([item('a', now), item('b', now), item('c', new Date(2025, 1, 1))], now);
  expect(groups.map(({ age, items }) => [age, items.map(({ id }) => id)])).toEqual([
    ['today', ['a', 'b']],
    ['older', ['c']],
  ]);
});
