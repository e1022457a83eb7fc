/** The estimate of a model's memory as parts of one bar. */
import type { Fit } from '$lib/api';

export type Part = 'weights' | 'kvCache' | 'scratch' | 'otherModels';

export interface Segment {
  part: Part;
  bytes: number;
  /** Of the whole bar, 0 to 1. */
  share: number;
}

export interface FitBar {
  segments: Segment[];
  /** Where the available memory ends, 0 to 1; 1 unless more is needed than there is. */
  limit: number;
  /** What stays free, or what is missing as a negative number. */
  freeBytes: number;
}

/** The bar is as long as the larger of what is needed and what there is. */
export function fitBar(fit: Fit): FitBar {
  const parts: [Part, number][] = [
    ['otherModels', fit.other_models_bytes],
    ['weights', fit.weights_bytes],
    ['kvCache', fit.kv_cache_bytes],
    ['scratch', fit.scratch_bytes],
  ];
  const needed = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  const length = Math.max(needed, fit.available_bytes, 1);
  return {
    segments: parts
      .filter(([, bytes]) => bytes > 0)
      .map(([part, bytes]) => ({ part, bytes, share: bytes / length })),
    limit: fit.available_bytes / length,
    freeBytes: fit.available_bytes - needed,
  };
}

const FIRST_CONTEXT = 2048;

/** Context lengths to choose from: powers of two up to the model's own. */
export function contextChoices(longest: number): number[] {
  const choices: number[] = [];
  for (let tokens = FIRST_CONTEXT; tokens < longest; tokens *= 2) choices.push(tokens);
  choices.push(longest);
  return choices;
}

/** The index of the choice nearest to a context length, from below where none is equal. */
export function nearestChoice(choices: number[], tokens: number): number {
  const above = choices.findIndex((choice) => choice > tokens);
  if (above === -1) return choices.length - 1;
  return Math.max(0, above - 1);
}
