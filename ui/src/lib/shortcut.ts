/** Keys as the platform writes them. */

/** Whether the machine's command key is ⌘. */
export const isMac =
  typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.userAgent);

/** `mod+n` as people read it: `⌘N` or `Ctrl+N`. */
export function shortcutText(keys: string): string {
  const names: Record<string, string> = isMac
    ? { mod: '⌘', alt: '⌥', shift: '⇧', enter: '↩', escape: 'esc' }
    : { mod: 'Ctrl', alt: 'Alt', shift: 'Shift', enter: 'Enter', escape: 'Esc' };
  return keys
    .split('+')
    .map((key) => names[key] ?? key.toUpperCase())
    .join(isMac ? '' : '+');
}

/** Whether a key event holds the platform's command key. */
export function isMod(event: KeyboardEvent): boolean {
  return isMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
}

/** Whether keys typed here are text. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}
