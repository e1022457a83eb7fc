/** Arrow keys between the rows of a list. */
import type { Attachment } from 'svelte/attachments';

/** Up, down, Home and End move the focus between the elements marked `data-row`. */
export const arrowKeys: Attachment<HTMLElement> = (list) => {
  function onkeydown(event: KeyboardEvent) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const rows = [...list.querySelectorAll<HTMLElement>('[data-row]')];
    const at = rows.findIndex((row) => row === document.activeElement);
    if (at < 0) return;
    const next = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    rows[Math.min(rows.length - 1, Math.max(0, next))]?.focus();
  }
  list.addEventListener('keydown', onkeydown);
  return () => list.removeEventListener('keydown', onkeydown);
};

/** Puts the focus on a row, counted from 0, or on the last one where there are fewer. */
export function focusRowAt(list: HTMLElement | null, index: number): void {
  const rows = list?.querySelectorAll<HTMLElement>('[data-row]');
  rows?.[Math.min(index, rows.length - 1)]?.focus();
}

/** Puts the focus back on the row of an id, or on the first where that is gone. */
export function focusRow(list: HTMLElement | null, id: string): void {
  const row = list?.querySelector<HTMLElement>(`[data-row="${CSS.escape(id)}"]`);
  if (row) row.focus();
  else focusRowAt(list, 0);
}
