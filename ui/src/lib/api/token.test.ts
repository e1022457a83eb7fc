import { beforeEach, expect, it } from 'vitest';
import { adoptToken, token } from './token.svelte';

beforeEach(() => sessionStorage.clear());

it('takes the token out of the address bar and keeps the route', () => {
  history.replaceState(null, '', '/#token=s3cret&route=/models');
  adoptToken(location, history);
  expect([token.value, token.state, location.hash]).toEqual(['s3cret', 'unknown', '#/models']);
  expect(sessionStorage.getItem('macmlx.control-token')).toBe('s3cret');
});

it('finds the token of the session again, and misses it in a new one', () => {
  sessionStorage.setItem('macmlx.control-token', 'kept');
  history.replaceState(null, '', '/#/chat');
  adoptToken(location, history);
  expect([token.value, token.state, location.hash]).toEqual(['kept', 'unknown', '#/chat']);
  sessionStorage.clear();
  adoptToken(location, history);
  expect([token.value, token.state]).toEqual([null, 'missing']);
});

it('accepts a pasted address, and asks again after a refusal', () => {
  token.set(' http://127.0.0.1:8000/#token=pasted ');
  expect([token.value, token.state]).toEqual(['pasted', 'unknown']);
  token.refuse();
  expect(token.state).toBe('wrong');
});
