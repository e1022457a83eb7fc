import { expect, it } from 'vitest';
import { minutesToDownload, recommended, runnable, STARTERS } from './starters';

const mac = (gib: number) => ({ memoryBytes: gib * 2 ** 30, hasGpu: true });

it.each([
  [4, 'Qwen3-0.6B-4bit'],
  [8, 'Qwen3-1.7B-4bit'],
  [16, 'Qwen3-4B-Instruct-2507-4bit'],
  [18, 'Qwen3-4B-Instruct-2507-4bit'],
  [24, 'Qwen3-8B-4bit'],
  [36, 'Qwen3-8B-4bit'],
  [64, 'Qwen3-14B-4bit'],
  [192, 'Qwen3-14B-4bit'],
])('recommends for %i GB', (gib, name) => {
  expect(recommended(mac(gib)).id).toBe(`mlx-community/${name}`);
});

it('takes machines that report less than is built in at their word', () => {
  expect(recommended({ memoryBytes: 7.6 * 2 ** 30, hasGpu: true }).parameters).toBe('1.7B');
});

it('keeps to the smallest where only the processor computes', () => {
  expect(recommended({ memoryBytes: 64 * 2 ** 30, hasGpu: false })).toBe(STARTERS[0]);
});

it('offers only what runs, and always something', () => {
  expect(runnable(mac(2)).map(({ parameters }) => parameters)).toEqual(['0.6B']);
  expect(runnable(mac(16)).at(-1)?.parameters).toBe('8.2B');
  expect(runnable(mac(64))).toHaveLength(STARTERS.length);
});

it.each([4, 8, 16, 24, 36, 64, 192])('recommends what runs on %i GB', (gib) => {
  expect(runnable(mac(gib))).toContain(recommended(mac(gib)));
});

it('lists them from small to large, each once', () => {
  const sizes = STARTERS.map(({ sizeBytes }) => sizeBytes);
  expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
  expect(new Set(STARTERS.map(({ id }) => id)).size).toBe(STARTERS.length);
});

it('estimates the time', () => {
  expect(minutesToDownload(4_620_000_000)).toBe(6);
  expect(minutesToDownload(1)).toBe(1);
});
