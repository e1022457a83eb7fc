/** Order and selection of the models on this machine. */
import type { Model } from '$lib/api';

export const LIBRARY_SORTS = ['name', 'size', 'parameters', 'modified'] as const;
export type LibrarySort = (typeof LIBRARY_SORTS)[number];

/** The two parts of `owner/name`; a model without an owner has an empty one. */
export function splitId(id: string): { owner: string; name: string } {
  const slash = id.indexOf('/');
  return { owner: slash < 0 ? '' : id.slice(0, slash), name: id.slice(slash + 1) };
}

const ABILITIES = ['reasoning', 'images', 'embedding', 'reranking'] as const;
type Ability = 'tools' | 'genericTools' | (typeof ABILITIES)[number];

/** What a model can do besides chat, in the order it is shown. */
export function abilities(capabilities: Model['capabilities']): Ability[] {
  const tools: Record<typeof capabilities.tools, Ability[]> = {
    none: [],
    generic: ['genericTools'],
    native: ['tools'],
  };
  return [...tools[capabilities.tools], ...ABILITIES.filter((name) => capabilities[name])];
}

function words(model: Model): string {
  const able = abilities(model.capabilities).map((name) =>
    name === 'genericTools' ? 'generic tools' : name,
  );
  return [model.id, model.model_type, model.quantization, ...model.aliases, ...able]
    .join(' ')
    .toLowerCase();
}

const byName = (a: Model, b: Model) =>
  splitId(a.id).name.localeCompare(splitId(b.id).name, undefined, { numeric: true }) ||
  a.id.localeCompare(b.id);

const orders: Record<LibrarySort, (a: Model, b: Model) => number> = {
  name: byName,
  size: (a, b) => b.size_bytes - a.size_bytes,
  parameters: (a, b) => (b.parameters ?? 0) - (a.parameters ?? 0),
  modified: (a, b) => Date.parse(b.modified) - Date.parse(a.modified),
};

/** The models that have every word of the search, in order; equal ones by name. */
export function selected(models: Model[], search: string, sort: LibrarySort): Model[] {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  return models
    .filter((model) => wanted.every((word) => words(model).includes(word)))
    .sort((a, b) => orders[sort](a, b) || byName(a, b));
}

/** What the models take on the disk. */
export function totalBytes(models: Model[]): number {
  return models.reduce((sum, model) => sum + model.size_bytes, 0);
}
