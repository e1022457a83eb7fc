/** The settings that have a row: how each is typed, and what is stored. */
import type { Key } from '$lib/i18n/index.svelte';
import { isHost, parsePort } from '$lib/address';
import { SETTINGS } from './table.gen';

export const groups = ['general', 'models', 'server', 'performance', 'logs'] as const;
export type Group = (typeof groups)[number];

export type Value = string | number | boolean | null;

/** What a person typed: a value to store, or what is wrong with it. */
export type Typed = { value: Value } | { error: Key };

export type Unit = 'tokens' | 'days' | 'GB';

/** A control as the program's table has it. */
type Row =
  | { kind: 'switch' | 'model' | 'port' | 'host' | 'url' | 'path' | 'list' }
  | { kind: 'choice'; options: readonly Value[] }
  | { kind: 'whole'; least: 0 | 1; unit?: Unit }
  | { kind: 'decimal'; isZeroAllowed: boolean; unit?: Unit };

export type Control =
  | { kind: 'switch' }
  | { kind: 'choice'; options: readonly Value[] }
  /** One of the models on this computer. */
  | { kind: 'model' }
  | {
      kind: 'text';
      unit?: Unit;
      isWide?: boolean;
      isNumber?: boolean;
      /** Texts with commas between them, which are stored as a list. */
      isList?: boolean;
      parse: (text: string) => Typed;
    };

/** An empty field means the default, or "none" where that is a value. */
const orDefault = (parse: (text: string) => Typed) => (text: string) =>
  text.trim() ? parse(text) : { value: null };

const LARGE = 1_000_000;

function wholeNumber(least: 0 | 1) {
  return orDefault((text) => {
    const value = /^\d+$/.test(text.trim()) ? Number(text) : NaN;
    if (value >= least && value <= LARGE) return { value };
    return { error: least === 0 ? 'settings.wrong.fromZero' : 'settings.wrong.fromOne' };
  });
}

function decimal(isZeroAllowed: boolean) {
  return orDefault((text) => {
    // Both marks that people write decimals with.
    const value = /^\d+([.,]\d+)?$/.test(text.trim()) ? Number(text.replace(',', '.')) : NaN;
    if (value > 0 || (isZeroAllowed && value === 0)) return { value };
    return { error: 'settings.wrong.decimal' };
  });
}

const port = orDefault((text) => {
  const value = parsePort(text);
  return value === null ? { error: 'settings.wrong.port' } : { value };
});

const host = orDefault((text) =>
  isHost(text) ? { value: text.trim() } : { error: 'settings.wrong.host' },
);

const url = orDefault((text) => {
  const trimmed = text.trim().replace(/\/+$/, '');
  return /^https?:\/\/[^\s/?#]+(\/[^\s?#]*)?$/i.test(trimmed)
    ? { value: trimmed }
    : { error: 'settings.wrong.url' };
});

/** What each text of a list must be is for the server to say. */
const list = orDefault((text) => ({ value: parts(text).join(', ') }));

const path = orDefault((text) => {
  const trimmed = text.trim();
  // What `~` and a relative path mean depends on who reads them.
  return /^([/~]|[a-z]:[\\/])/i.test(trimmed)
    ? { value: trimmed }
    : { error: 'settings.wrong.path' };
});

/** How a value of each kind of control is typed. */
function controlOf(row: Row): Control {
  switch (row.kind) {
    case 'switch':
    case 'model':
      return { kind: row.kind };
    case 'choice':
      return { kind: 'choice', options: row.options };
    case 'port':
      return { kind: 'text', isNumber: true, parse: port };
    case 'host':
      return { kind: 'text', parse: host };
    case 'url':
      return { kind: 'text', isWide: true, parse: url };
    case 'path':
      return { kind: 'text', isWide: true, parse: path };
    case 'list':
      return { kind: 'text', isWide: true, isList: true, parse: list };
    case 'whole':
      return { kind: 'text', isNumber: true, unit: row.unit, parse: wholeNumber(row.least) };
    case 'decimal':
      return { kind: 'text', isNumber: true, unit: row.unit, parse: decimal(row.isZeroAllowed) };
  }
}

export type SettingKey = keyof typeof SETTINGS;

export interface Setting {
  key: SettingKey;
  group: Group;
  control: Control;
}

/** In the order they are shown. */
export const settingList: Setting[] = (Object.keys(SETTINGS) as SettingKey[]).map((key) => ({
  key,
  group: SETTINGS[key].group,
  control: controlOf(SETTINGS[key].control),
}));

/** A document of settings by key, whatever else is in it. */
export type Document = Readonly<Record<string, unknown>>;

/** The texts of a list as a person writes it. */
function parts(text: string): string[] {
  return text.split(/[\s,，、]+/).filter(Boolean);
}

/** A stored value; what is missing, or a list without texts, counts as none. */
export function valueOf(document: Document, key: SettingKey): Value {
  const value = document[key];
  if (Array.isArray(value)) return value.join(', ') || null;
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : null;
}

/** What to store so that a value holds: none at all where it is the default. */
export function stored(value: Value, fallback: Value): Value {
  return value === fallback ? null : value;
}

/** A value as it is sent. */
export function sent(key: SettingKey, value: Value): Value | string[] {
  const isList = SETTINGS[key].control.kind === 'list';
  return isList && typeof value === 'string' ? parts(value) : value;
}

/** Whether every word of a search is in one of the texts. */
export function isFound(search: string, texts: readonly string[]): boolean {
  const all = texts.join('\n').toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word));
}
