import { expect, it } from 'vitest';
import { formErrors, formOf, patchOf } from './parameters-form';

const empty = formOf({});

it('shows what is set and leaves the rest empty', () => {
  const form = formOf({ temperature: 0.7, maxTokens: 2048, templateKwargs: {}, alias: null });
  expect(form).toMatchObject({ temperature: '0.7', maxTokens: '2048', topP: '', alias: '' });
  expect(form.templateKwargs).toBe('');
});

it('patches only what changed, and resets what was emptied', () => {
  const before = formOf({ temperature: 0.7, topP: 0.95, systemPrompt: 'Be brief.' });
  const after = { ...before, temperature: '0', topP: ' ', alias: ' mini ' };
  expect(patchOf(before, after)).toEqual({ temperature: 0, topP: null, alias: 'mini' });
  expect(patchOf(before, before)).toEqual({});
});

it('removes template arguments that are gone', () => {
  const before = formOf({ templateKwargs: { enable_thinking: false, style: 'short' } });
  expect(patchOf(before, { ...before, templateKwargs: '{"enable_thinking": true}' })).toEqual({
    templateKwargs: { enable_thinking: true, style: null },
  });
  expect(patchOf(before, { ...before, templateKwargs: '' })).toEqual({ templateKwargs: null });
});

it('names what is wrong', () => {
  expect(formErrors(empty)).toEqual({});
  expect(
    formErrors({
      ...empty,
      temperature: 'hot',
      topP: '1.5',
      topK: '2.5',
      maxTokens: '0',
      templateKwargs: '[1]',
    }),
  ).toEqual({
    temperature: 'number',
    topP: 'range',
    topK: 'integer',
    maxTokens: 'range',
    templateKwargs: 'json',
  });
  expect(formErrors({ ...empty, templateKwargs: '{"a":' })).toEqual({ templateKwargs: 'json' });
});
