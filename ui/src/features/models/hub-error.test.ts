import { expect, it } from 'vitest';
import { ApiError } from '$lib/api';
import { hubErrorTitle, isAccessError } from './hub-error';

const error = (code: string) => new ApiError(409, code, 'in detail');

it.each([
  ['offline', 'Hugging Face cannot be reached'],
  ['hub_model_not_found', 'Hugging Face has no such model'],
  ['gated', 'The licence must be accepted first'],
  ['rate_limited', 'Hugging Face asks to wait; try again later'],
  ['internal_error', 'Something went wrong'],
])('names %s', (code, title) => {
  expect(hubErrorTitle(error(code))).toBe(title);
});

it('names what is no error of the server', () => {
  expect(hubErrorTitle(new TypeError('x'))).toBe('Something went wrong');
});

it('tells what a token may help against', () => {
  expect(isAccessError(error('gated')) && isAccessError(error('unauthorized'))).toBe(true);
  expect(isAccessError(error('offline')) || isAccessError(undefined)).toBe(false);
});
