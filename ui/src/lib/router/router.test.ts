import { expect, it } from 'vitest';
import { go, href, parse, route } from './router.svelte';

it('reads back what it writes', () => {
  const hash = href('models', 'a/b c', { search: 'é & x', none: undefined });
  expect(hash).toBe('#/models/a%2Fb%20c?search=%C3%A9+%26+x');
  const { path, query } = parse(hash);
  expect(path).toEqual(['models', 'a/b c']);
  expect(query.get('search')).toBe('é & x');
});

it('takes strange hashes as they are', () => {
  expect(parse('').path).toEqual([]);
  expect(parse('#//chat//x/').path).toEqual(['chat', 'x']);
  expect(parse('#/chat/%E0%A4').path).toEqual(['chat', '%E0%A4']);
});

it('goes to a route', () => {
  go(href('chat', '1'));
  expect(route.path).toEqual(['chat', '1']);
  expect(location.hash).toBe('#/chat/1');
});
