import { expect, it } from 'vitest';
import type { Model } from '$lib/api';
import { abilities, selected, splitId, totalBytes } from './library-list';

const capabilities = {
  chat: true,
  tools: 'none' as const,
  reasoning: false,
  images: false,
  embedding: false,
  reranking: false,
};

function model(id: string, given: Partial<Model> = {}): Model {
  return {
    id,
    path: `/models/${id}`,
    state: 'complete',
    reason: null,
    model_type: 'qwen3',
    is_supported: true,
    unsupported_reason: null,
    size_bytes: 1e9,
    parameters: 1e9,
    quantization: '4-bit',
    context_length: 40960,
    modified: '2026-01-01T00:00:00Z',
    capabilities,
    aliases: [],
    is_loaded: false,
    is_loading: false,
    memory_bytes: null,
    expires_in_seconds: null,
    commit: null,
    is_default: false,
    ...given,
  };
}

const models = [
  model('mlx-community/Qwen3-8B-4bit', {
    size_bytes: 4e9,
    parameters: 8e9,
    capabilities: { ...capabilities, tools: 'native', reasoning: true },
  }),
  model('mlx-community/Qwen3-14B-4bit', { size_bytes: 8e9, parameters: 14e9, aliases: ['big'] }),
  model('other/gemma-3-1b', {
    model_type: 'gemma3_text',
    quantization: null,
    modified: '2026-02-01T00:00:00Z',
    capabilities: { ...capabilities, tools: 'generic' },
  }),
];
const ids = (list: Model[]) => list.map(({ id }) => splitId(id).name);

it('splits ids at the first slash', () => {
  expect(splitId('a/b')).toEqual({ owner: 'a', name: 'b' });
  expect(splitId('flat')).toEqual({ owner: '', name: 'flat' });
});

it('sorts numbers in names as numbers', () => {
  expect(ids(selected(models, '', 'name'))).toEqual([
    'gemma-3-1b',
    'Qwen3-8B-4bit',
    'Qwen3-14B-4bit',
  ]);
});

it('sorts by size, parameters and time, largest and newest first', () => {
  expect(ids(selected(models, '', 'size'))[0]).toBe('Qwen3-14B-4bit');
  expect(ids(selected(models, '', 'parameters'))[2]).toBe('gemma-3-1b');
  expect(ids(selected(models, '', 'modified'))[0]).toBe('gemma-3-1b');
});

it('finds every word, in ids, aliases, architectures and capabilities', () => {
  expect(ids(selected(models, 'qwen 14b', 'name'))).toEqual(['Qwen3-14B-4bit']);
  expect(ids(selected(models, 'BIG', 'name'))).toEqual(['Qwen3-14B-4bit']);
  expect(ids(selected(models, 'gemma3_text', 'name'))).toEqual(['gemma-3-1b']);
  expect(ids(selected(models, 'reasoning', 'name'))).toEqual(['Qwen3-8B-4bit']);
  expect(ids(selected(models, 'tools', 'name'))).toEqual(['gemma-3-1b', 'Qwen3-8B-4bit']);
  expect(ids(selected(models, 'generic tools', 'name'))).toEqual(['gemma-3-1b']);
  expect(selected(models, 'nothing such', 'name')).toEqual([]);
});

it('tells a generic notation of tools from the model’s own', () => {
  expect(abilities({ ...capabilities, tools: 'native' })).toEqual(['tools']);
  expect(abilities({ ...capabilities, tools: 'generic' })).toEqual(['genericTools']);
  expect(abilities({ ...capabilities, tools: 'none', images: true })).toEqual(['images']);
});

it('adds up the disk', () => {
  expect(totalBytes(models)).toBe(13e9);
});
