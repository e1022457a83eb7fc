/** The parameters of a model as a form holds them, and the merge patch that a change makes. */
import type { ModelParameters } from '$lib/api';
import { SAMPLING_PARAMETERS } from '../sampling/parameters.gen';

export type SamplingKey = (typeof SAMPLING_PARAMETERS)[number]['key'];

/** A number as a person may set it: what it may be, and what it means when it is empty. */
export interface NumberField {
  key: SamplingKey | 'maxTokens';
  min: number;
  max: number;
  /** The least value may not be taken itself. */
  isAbove: boolean;
  isInteger: boolean;
}

const MAX_TOKENS: NumberField = {
  key: 'maxTokens',
  min: 1,
  max: 1_000_000,
  isAbove: false,
  isInteger: true,
};

const COMMON: readonly NumberField['key'][] = [
  'temperature',
  'topP',
  'topK',
  'minP',
  'repetitionPenalty',
];

/** What people look for first. */
export const COMMON_FIELDS: readonly NumberField[] = [
  ...SAMPLING_PARAMETERS.filter(({ key }) => COMMON.includes(key)),
  MAX_TOKENS,
];

/** The other sampling parameters there are. */
export const MORE_FIELDS = SAMPLING_PARAMETERS.filter(({ key }) => !COMMON.includes(key));

const NUMBER_FIELDS: readonly NumberField[] = [...COMMON_FIELDS, ...MORE_FIELDS];

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
  if (value < field.min || value > field.max || (field.isAbove && value === field.min))
    return 'range';
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
