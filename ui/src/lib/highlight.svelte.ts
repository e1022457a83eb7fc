/** Syntax highlighting: the library is loaded when the first code block wants it. */
import type { HLJSApi } from 'highlight.js';

let library = $state.raw<HLJSApi | null>(null);
let isWanted = false;

async function load(): Promise<void> {
  library = (await import('highlight.js/lib/common')).default;
}

/** HTML of the highlighted code; null (show it plain) while the library loads or does not know the language. */
export function highlight(code: string, language: string): string | null {
  if (!library) {
    if (!isWanted) {
      isWanted = true;
      void load();
    }
    return null;
  }
  if (!library.getLanguage(language)) return null;
  return library.highlight(code, { language, ignoreIllegals: true }).value;
}
