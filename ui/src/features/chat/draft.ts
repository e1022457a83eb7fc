/** What was typed and not sent, by conversation; lives as long as the page's session. */
const key = (id: string) => `macmlx.draft.${id}`;

export function readDraft(id: string): string {
  return sessionStorage.getItem(key(id)) ?? '';
}

export function writeDraft(id: string, text: string): void {
  if (text) sessionStorage.setItem(key(id), text);
  else sessionStorage.removeItem(key(id));
}
