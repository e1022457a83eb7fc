/** The settings that have a row: where each stands, its control, and what it may hold. */
import type { Key } from '$lib/i18n/index.svelte';
import { isHost, parsePort } from '$lib/address';

export const groups = ['general', 'models', 'server', 'performance', 'logs'] as const;
export type Group = (typeof groups)[number];

export type Value = string | number | boolean | null;

/** What a person typed: a value to store, or what is wrong with it. */
export type Typed = { value: Value } | { error: Key };

export type Control =
  | { kind: 'switch' }
  | { kind: 'choice'; options: { value: Value; label: Key }[] }
  /** One of the models on this computer. */
  | { kind: 'model' }
  | {
      kind: 'text';
      unit?: Key;
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

interface Row {
  group: Group;
  control: Control;
}

/** In the order they are shown. */
const table = {
  language: {
    group: 'general',
    control: {
      kind: 'choice',
      options: [
        { value: 'system', label: 'settings.languageSystem' },
        { value: 'en', label: 'settings.languageEnglish' },
        { value: 'zh-Hans', label: 'settings.languageChinese' },
      ],
    },
  },
  theme: {
    group: 'general',
    control: {
      kind: 'choice',
      options: [
        { value: 'system', label: 'settings.themeSystem' },
        { value: 'light', label: 'settings.themeLight' },
        { value: 'dark', label: 'settings.themeDark' },
      ],
    },
  },
  modelDirectory: { group: 'general', control: { kind: 'text', isWide: true, parse: path } },
  hfEndpoint: { group: 'models', control: { kind: 'text', isWide: true, parse: url } },
  defaultModel: { group: 'models', control: { kind: 'model' } },
  unknownModels: {
    group: 'models',
    control: {
      kind: 'choice',
      options: [
        { value: 'default', label: 'settings.unknownDefault' },
        { value: 'refuse', label: 'settings.unknownRefuse' },
      ],
    },
  },
  genericTools: { group: 'models', control: { kind: 'switch' } },
  autoStartServer: { group: 'server', control: { kind: 'switch' } },
  serverPort: { group: 'server', control: { kind: 'text', isNumber: true, parse: port } },
  serverHost: { group: 'server', control: { kind: 'text', parse: host } },
  allowedHosts: {
    group: 'server',
    control: { kind: 'text', isWide: true, isList: true, parse: list },
  },
  allowedOrigins: {
    group: 'server',
    control: { kind: 'text', isWide: true, isList: true, parse: list },
  },
  maxBatchSize: {
    group: 'performance',
    control: { kind: 'text', isNumber: true, parse: wholeNumber(1) },
  },
  maxWaitingRequests: {
    group: 'performance',
    control: { kind: 'text', isNumber: true, parse: wholeNumber(0) },
  },
  prefillChunkTokens: {
    group: 'performance',
    control: {
      kind: 'text',
      isNumber: true,
      unit: 'settings.unitTokens',
      parse: wholeNumber(1),
    },
  },
  kvBits: {
    group: 'performance',
    control: {
      kind: 'choice',
      options: [
        { value: null, label: 'settings.kvFull' },
        { value: 8, label: 'settings.kv8' },
        { value: 4, label: 'settings.kv4' },
      ],
    },
  },
  kvGroupSize: {
    group: 'performance',
    control: { kind: 'text', isNumber: true, parse: wholeNumber(1) },
  },
  kvQuantizationStart: {
    group: 'performance',
    control: {
      kind: 'text',
      isNumber: true,
      unit: 'settings.unitTokens',
      parse: wholeNumber(0),
    },
  },
  dequantizeBudgetGB: {
    group: 'performance',
    control: { kind: 'text', isNumber: true, unit: 'settings.unitGB', parse: decimal(true) },
  },
  maxResidentMemoryGB: {
    group: 'performance',
    control: { kind: 'text', isNumber: true, unit: 'settings.unitGB', parse: decimal(false) },
  },
  logRetentionDays: {
    group: 'logs',
    control: {
      kind: 'text',
      isNumber: true,
      unit: 'settings.unitDays',
      parse: wholeNumber(0),
    },
  },
} as const satisfies Record<string, Row>;

export type SettingKey = keyof typeof table;

export interface Setting extends Row {
  key: SettingKey;
}

export const settingList: Setting[] = (Object.keys(table) as SettingKey[]).map((key) => ({
  key,
  ...(table[key] as Row),
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
  const { control }: Row = table[key];
  const isList = control.kind === 'text' && control.isList;
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
