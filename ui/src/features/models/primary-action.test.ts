import { describe, expect, it } from 'vitest';
import { primaryAction, type Situation } from './primary-action';

const model = {
  state: 'complete',
  is_loaded: false,
  is_loading: false,
  is_supported: true,
  capabilities: {
    chat: true,
    tools: 'none',
    reasoning: false,
    images: false,
    embedding: false,
    reranking: false,
  },
} as const;
const action = (situation: Partial<Situation>) =>
  primaryAction({ whenLoaded: 'unload', ...situation });

describe('the primary action', () => {
  it('follows a download from nothing to a chat', () => {
    const whenLoaded = 'chat';
    const steps: [Partial<Situation>, string][] = [
      [{}, 'download'],
      [{ job: { state: 'queued' } }, 'pause'],
      [{ job: { state: 'listing' } }, 'pause'],
      [{ job: { state: 'downloading' } }, 'pause'],
      [{ job: { state: 'paused' } }, 'resume'],
      [{ job: { state: 'failed' } }, 'retry'],
      [{ job: { state: 'verifying' } }, 'pause'],
      [{ job: { state: 'done' }, model }, 'load'],
      [{ model, busy: 'loading' }, 'loading'],
      [{ model: { ...model, is_loading: true } }, 'loading'],
      [{ model: { ...model, is_loaded: true } }, 'chat'],
    ];
    for (const [situation, expected] of steps)
      expect(action({ whenLoaded, ...situation })).toBe(expected);
  });

  it('is no chat with a model that only reads', () => {
    const capabilities = { ...model.capabilities, chat: false, embedding: true };
    const embedder = { ...model, is_loaded: true, capabilities };
    expect(action({ model: embedder, whenLoaded: 'chat' })).toBe('unload');
    expect(action({ model: { ...embedder, is_loaded: false }, whenLoaded: 'chat' })).toBe('load');
  });

  it('frees memory in the library', () => {
    expect(action({ model: { ...model, is_loaded: true } })).toBe('unload');
    expect(action({ model: { ...model, is_loaded: true }, busy: 'unloading' })).toBe('unloading');
  });

  it('offers to fetch what is missing of a model', () => {
    const incomplete = { ...model, state: 'incomplete' } as const;
    expect(action({ model: incomplete })).toBe('download');
    expect(action({ model: incomplete, job: { state: 'paused' } })).toBe('resume');
  });

  it('fetches again what was deleted after its download', () => {
    expect(action({ job: { state: 'done' } })).toBe('download');
  });

  it('does not load what the engine does not know', () => {
    expect(action({ model: { ...model, is_supported: false } })).toBe('none');
  });
});
