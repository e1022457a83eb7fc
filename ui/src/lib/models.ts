/** What a model is for. */
import type { Model } from '$lib/api';

/** Whether it writes, rather than turning texts into numbers. */
export function generates({ capabilities }: Pick<Model, 'capabilities'>): boolean {
  return !capabilities.embedding && !capabilities.reranking;
}
