/** Light, dark, or as the system: sets `data-theme` on the document. */

export type ThemeSetting = 'system' | 'light' | 'dark';

const KEY = 'macmlx.theme';
const dark = window.matchMedia('(prefers-color-scheme: dark)');
let setting: ThemeSetting = 'system';
let current = $state<'light' | 'dark'>('light');

function paint(): void {
  current = setting === 'system' ? (dark.matches ? 'dark' : 'light') : setting;
  document.documentElement.dataset.theme = current;
}

export const theme = {
  /** What is shown now. */
  get current() {
    return current;
  },
};

/** Shows a theme and remembers it, so that the next start paints right before settings arrive. */
export function setTheme(next: ThemeSetting): void {
  setting = next;
  localStorage.setItem(KEY, next);
  paint();
}

/** Paints the remembered theme and follows the system from here on. */
export function startTheme(): void {
  const kept = localStorage.getItem(KEY);
  setting = kept === 'light' || kept === 'dark' ? kept : 'system';
  dark.addEventListener('change', paint);
  paint();
}
