import { afterEach, beforeEach, expect, it } from 'vitest';
import type { DownloadJob } from '$lib/api';
import { setLanguage } from '$lib/i18n/index.svelte';
import { amountText, isMoving, jobOf, paceText, share } from './job-progress';

const job: DownloadJob = {
  id: '1',
  model: 'a/b',
  revision: null,
  commit: null,
  state: 'downloading',
  total_bytes: 4_300_000_000,
  done_bytes: 1_200_000_000,
  bytes_per_second: 12_000_000,
  eta_seconds: 258,
  files: [],
  error: null,
  created: '2026-01-01T00:00:00Z',
  updated: '2026-01-01T00:00:00Z',
};

beforeEach(() => setLanguage('en'));
afterEach(() => setLanguage('en'));

it('says how much is here', () => {
  expect(amountText(job)).toBe('1.2 GB of 4.3 GB · 28%');
  expect(amountText({ ...job, total_bytes: null, done_bytes: 0 })).toBe('');
  expect(amountText({ ...job, total_bytes: null, done_bytes: 5000 })).toBe('5 kB');
  expect(amountText({ ...job, state: 'done', done_bytes: 4_300_000_000 })).toBe('4.3 GB');
});

it('says how fast it comes and how long it takes', () => {
  expect(paceText(job)).toBe('12 MB/s · 4m 18s left');
  expect(paceText({ ...job, eta_seconds: null })).toBe('12 MB/s');
  expect(paceText({ ...job, bytes_per_second: 0 })).toBe('Waiting for data');
  expect(paceText({ ...job, state: 'paused' })).toBe('Paused');
});

it('says it in Chinese', async () => {
  await setLanguage('zh-Hans');
  expect(amountText(job)).toBe('1.2 GB / 4.3 GB · 28%');
  expect(paceText({ ...job, state: 'verifying' })).toBe('正在校验');
});

it('knows the share only with a size, and never more than all', () => {
  expect(share(job)).toBeCloseTo(0.279, 3);
  expect(share({ total_bytes: null, done_bytes: 1 })).toBeNull();
  expect(share({ total_bytes: 0, done_bytes: 0 })).toBe(1);
  expect(share({ total_bytes: 10, done_bytes: 12 })).toBe(1);
});

it('tells what goes on by itself', () => {
  expect((['queued', 'verifying'] as const).every((state) => isMoving({ state }))).toBe(true);
  expect((['paused', 'done', 'failed'] as const).some((state) => isMoving({ state }))).toBe(false);
});

it('prefers the job that is not over', () => {
  const done = { ...job, id: 'old', state: 'done' as const };
  expect(jobOf([done, job], 'a/b')?.id).toBe('1');
  expect(jobOf([done], 'a/b')?.id).toBe('old');
  expect(jobOf([done], 'c/d')).toBeUndefined();
});
