/** Which model answers a conversation. */
import type { Model } from '$lib/api';

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

/** The wanted one if it is here, else a loaded one, the default, any; null if there is none. */
export function chosenModel(models: Model[], wanted: string | null | undefined): Model | null {
  const usable = chatModels(models);
  return (
    usable.find((model) => model.id === wanted || model.aliases.includes(wanted ?? '')) ??
    usable.find((model) => model.is_loaded) ??
    usable.find((model) => model.is_default) ??
    usable[0] ??
    null
  );
}
