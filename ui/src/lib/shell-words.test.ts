import { expect, it } from 'vitest';
import { shellWord, shellWords } from './shell-words';

it('leaves plain words unquoted', () => {
  expect(shellWord('http://127.0.0.1:8000')).toBe('http://127.0.0.1:8000');
  expect(shellWord('')).toBe("''");
  expect(shellWord("it's")).toBe("'it'\\''s'");
});

it.each(['plain', '', ' ', "it's", '"q"', '$HOME `id`', 'a\\b', 'a\nb', '模型'])(
  'reads back %j',
  (text) => expect(shellWords(`x ${shellWord(text)} y`)).toEqual(['x', text, 'y']),
);

it('reads what people type', () => {
  expect(shellWords('  npx -y  @scope/server "/My Files" --x=\'a b\' c\\ d "e\\"f" ')).toEqual([
    'npx',
    '-y',
    '@scope/server',
    '/My Files',
    '--x=a b',
    'c d',
    'e"f',
  ]);
  expect(shellWords('')).toEqual([]);
  expect(shellWords('say "hello')).toBeNull();
});
