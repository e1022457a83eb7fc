/** The parameters of a model as a form holds them, and the merge patch that a change makes. */
import type { ModelParameters } from '$lib/api';

/** A number as a person may set it: bounds of the field, and what it means when it is empty. */
export interface NumberField {
  key: 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty' | 'maxTokens';
  min: number;
  max: number;
  step: number;
  isInteger: boolean;
}

export const NUMBER_FIELDS: NumberField[] = [
  { key: 'temperature', min: 0, max: 2, step: 0.05, isInteger: false },
  { key: 'topP', min: 0.01, max: 1, step: 0.01, isInteger: false },
  { key: 'topK', min: 0, max: 1_000_000, step: 1, isInteger: true },
  { key: 'minP', min: 0, max: 1, step: 0.01, isInteger: false },
  { key: 'repetitionPenalty', min: 0.01, max: 10, step: 0.01, isInteger: false },
  { key: 'maxTokens', min: 1, max: 1_000_000, step: 1, isInteger: true },
];

/** Text as typed; empty is not set. */
export type ParametersForm = Record<
  NumberField['key'] | 'systemPrompt' | 'alias' | 'templateKwargs',
  string
>;

export type FieldError = 'number' | 'range' | 'integer' | 'json';

export function formOf(parameters: ModelParameters): ParametersForm {
  const kwargs = parameters.templateKwargs;
  const form = {
    systemPrompt: parameters.systemPrompt ?? '',
    alias: parameters.alias ?? '',
    templateKwargs: kwargs && Object.keys(kwargs).length > 0 ? JSON.stringify(kwargs, null, 2) : '',
  } as ParametersForm;
  for (const { key } of NUMBER_FIELDS) form[key] = parameters[key]?.toString() ?? '';
  return form;
}

function numberError(field: NumberField, text: string): FieldError | undefined {
  if (text.trim() === '') return undefined;
  const value = Number(text);
  if (!Number.isFinite(value)) return 'number';
  if (value < field.min || value > field.max) return 'range';
  return field.isInteger && !Number.isInteger(value) ? 'integer' : undefined;
}

/** The object of a JSON text; undefined when it is none. */
function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** What is wrong, by field; empty when the form can be saved. */
export function formErrors(
  form: ParametersForm,
): Partial<Record<keyof ParametersForm, FieldError>> {
  const errors: Partial<Record<keyof ParametersForm, FieldError>> = {};
  for (const field of NUMBER_FIELDS) {
    const error = numberError(field, form[field.key]);
    if (error) errors[field.key] = error;
  }
  if (form.templateKwargs.trim() && !objectOf(form.templateKwargs)) errors.templateKwargs = 'json';
  return errors;
}

function valueOf(key: keyof ParametersForm, text: string): unknown {
  if (text.trim() === '') return null;
  if (key === 'systemPrompt') return text;
  if (key === 'alias') return text.trim();
  return key === 'templateKwargs' ? objectOf(text) : Number(text);
}

/**
 * The merge patch from one form to another that has no errors. A member of `templateKwargs` that
 * is gone is removed by null, as a merge patch keeps what it does not name.
 */
export function patchOf(before: ParametersForm, after: ParametersForm): ModelParameters {
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys(after) as (keyof ParametersForm)[])
    if (before[key] !== after[key]) patch[key] = valueOf(key, after[key]);
  const next = patch.templateKwargs;
  if (typeof next === 'object' && next !== null) {
    const gone = Object.keys(objectOf(before.templateKwargs || '{}') ?? {}).filter(
      (key) => !(key in next),
    );
    patch.templateKwargs = { ...next, ...Object.fromEntries(gone.map((key) => [key, null])) };
  }
  return patch as ModelParameters;
}
