/** Strings in the language of the person, typed by their keys. */
import { english, type Key, type Strings, type Text } from './strings';

export type { Key } from './strings';
export type Language = 'en' | 'zh-Hans';
export type LanguageSetting = Language | 'system';
export type Params = Record<string, string | number>;

let language = $state<Language>('en');
let strings = $state.raw<Strings>(english);
let wanted: Language = 'en';

/** The language for a setting: itself, or the first of the browser's that there is. */
export function languageFor(setting: LanguageSetting, preferred: readonly string[]): Language {
  if (setting !== 'system') return setting;
  for (const tag of preferred) {
    const { language: base, script, region } = localeOf(tag);
    if (base === 'en') return 'en';
    // Readers of traditional characters are better served by simplified ones than by English.
    if (base === 'zh' && (script || region)) return 'zh-Hans';
  }
  return 'en';
}

/** What a tag means. Web views of systems without a language have `C`, which is no tag. */
function localeOf(tag: string): Partial<Intl.Locale> {
  try {
    return new Intl.Locale(tag).maximize();
  } catch {
    return {};
  }
}

/** Changes the language of the whole UI; resolves when its strings are there. */
export async function setLanguage(next: Language): Promise<void> {
  wanted = next;
  const table = next === 'en' ? english : (await import('./simplified-chinese')).chinese;
  // A later call may have overtaken this one.
  if (wanted !== next) return;
  strings = table;
  language = next;
  document.documentElement.lang = next;
}

/** The language in use. */
export const locale = {
  get current() {
    return language;
  },
};

const rules = new Map<string, Intl.PluralRules>();

/** The text of one plural form with its `{name}`s filled in; numbers are written as the language does. */
export function render(text: Text, params: Params, tag: string): string {
  let form: string;
  if (typeof text === 'string') form = text;
  else {
    const rule = rules.get(tag) ?? new Intl.PluralRules(tag);
    rules.set(tag, rule);
    const category = rule.select(Number(params.count ?? 0));
    form = category === 'one' && text.one !== undefined ? text.one : text.other;
  }
  return form.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = params[name];
    if (value === undefined) return whole;
    return typeof value === 'number' ? new Intl.NumberFormat(tag).format(value) : value;
  });
}

/** The string under a key: `t('chat.title')`, `t('models.count', { count: 3 })`. */
export function t(key: Key, params: Params = {}): string {
  const dot = key.indexOf('.');
  const text = strings[key.slice(0, dot)]?.[key.slice(dot + 1)];
  return render(text ?? key, params, language);
}
