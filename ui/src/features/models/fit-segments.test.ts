import { expect, it } from 'vitest';
import type { Fit } from '$lib/api';
import { contextChoices, fitBar, nearestChoice } from './fit-segments';

const fit: Fit = {
  verdict: 'fits',
  context_tokens: 8192,
  weights_bytes: 4e9,
  kv_cache_bytes: 1e9,
  scratch_bytes: 5e8,
  other_models_bytes: 0,
  needed_bytes: 5.5e9,
  available_bytes: 11e9,
  budget_source: '',
  is_estimated: true,
};

it('shows what is free', () => {
  const bar = fitBar(fit);
  expect(bar.segments.map(({ part }) => part)).toEqual(['weights', 'kvCache', 'scratch']);
  expect(bar.segments.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(0.5);
  expect(bar).toMatchObject({ limit: 1, freeBytes: 5.5e9 });
});

it('shows where the memory ends when more is needed', () => {
  const bar = fitBar({ ...fit, other_models_bytes: 5.5e9, available_bytes: 5.5e9 });
  expect(bar.segments.map(({ part }) => part)[0]).toBe('otherModels');
  expect(bar.segments.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  expect(bar.limit).toBeCloseTo(0.5);
  expect(bar.freeBytes).toBe(-5.5e9);
});

it('is empty, not broken, when nothing is known', () => {
  const nothing = { weights_bytes: 0, kv_cache_bytes: 0, scratch_bytes: 0, available_bytes: 0 };
  expect(fitBar({ ...fit, ...nothing })).toEqual({ segments: [], limit: 0, freeBytes: 0 });
});

it('offers contexts up to the longest', () => {
  expect(contextChoices(40960)).toEqual([2048, 4096, 8192, 16384, 32768, 40960]);
  expect(contextChoices(8192)).toEqual([2048, 4096, 8192]);
  expect(contextChoices(1024)).toEqual([1024]);
});

it('finds the choice for a context', () => {
  const choices = contextChoices(40960);
  expect(nearestChoice(choices, 8192)).toBe(2);
  expect(nearestChoice(choices, 9000)).toBe(2);
  expect(nearestChoice(choices, 100)).toBe(0);
  expect(nearestChoice(choices, 1e6)).toBe(5);
});
