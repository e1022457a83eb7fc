/** Which model answers a conversation. */
import type { Model, ModelList } from '$lib/api';

/** `owner/name` without its owner. */
export function shortName(id: string): string {
  return id.slice(id.indexOf('/') + 1);
}

/** Models that can chat here. */
export function chatModels(models: Model[]): Model[] {
  return models.filter(
    (model) => model.state === 'complete' && model.is_supported && model.capabilities.chat,
  );
}

/** The wanted one if it is here, else the one that the server would choose; null if none chats. */
export function chosenModel(
  list: ModelList | undefined,
  wanted: string | null | undefined,
): Model | null {
  const usable = chatModels(list?.models ?? []);
  return (
    usable.find((model) => model.id === wanted || model.aliases.includes(wanted ?? '')) ??
    usable.find((model) => model.id === list?.chosen) ??
    null
  );
}
