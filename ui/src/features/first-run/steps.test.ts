import { expect, it } from 'vitest';
import { nextStep, previousStep, STEPS, stepOf } from './steps';

it('shows the step of the address', () => {
  for (const step of STEPS) expect(stepOf(step, [{ state: 'failed' }], true)).toBe(step);
});

it('begins at the beginning', () => {
  expect(stepOf(undefined, [], true)).toBe('welcome');
  expect(stepOf('no-such-step', [], true)).toBe('welcome');
});

it('goes on where an interrupted first run was', () => {
  expect(stepOf(undefined, [{ state: 'downloading' }], true)).toBe('server');
  expect(stepOf(undefined, [{ state: 'paused' }], true)).toBe('server');
  expect(stepOf(undefined, [{ state: 'failed' }], true)).toBe('model');
  expect(stepOf(undefined, [{ state: 'done' }], true)).toBe('welcome');
});

it('begins anew for those who ask for it later', () => {
  expect(stepOf(undefined, [{ state: 'downloading' }], false)).toBe('welcome');
});

it('goes forth and back', () => {
  expect(nextStep('welcome')).toBe('folder');
  expect(nextStep('server')).toBeUndefined();
  expect(previousStep('folder')).toBe('welcome');
  expect(previousStep('welcome')).toBeUndefined();
});
