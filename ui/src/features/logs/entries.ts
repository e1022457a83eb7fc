/** Log entries as a list: pages and what came since put together, searched, cut to what is seen. */
import type { LogEntry, LogFilter } from '$lib/api';

export type Level = LogEntry['level'];

/** The first matters most. */
export const levels: readonly Level[] = ['error', 'warn', 'info', 'debug', 'trace'];

/** Whether an entry belongs to a filter, by the same rules as the server. */
export function fits(entry: LogEntry, filter: LogFilter): boolean {
  if (levels.indexOf(entry.level) > levels.indexOf(filter.level)) return false;
  if (filter.category && entry.category !== filter.category) return false;
  const wanted = filter.search?.toLowerCase();
  if (!wanted) return true;
  const has = (text: string) => text.toLowerCase().includes(wanted);
  return (
    has(entry.message) ||
    Object.entries(entry.fields).some(([name, value]) => has(name) || has(fieldText(value)))
  );
}

/** The value of a field as text. */
export function fieldText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Oldest first, each entry once. Pages come newest page first; `live` entries fit already. */
export function merged(pages: readonly LogEntry[][], live: readonly LogEntry[]): LogEntry[] {
  const byId = new Map<number, LogEntry>();
  for (const page of pages) for (const entry of page) byId.set(entry.id, entry);
  const older = [...byId.values()].sort((one, other) => one.id - other.id);
  const last = older.at(-1)?.id ?? -Infinity;
  return [...older, ...live.filter((entry) => entry.id > last)];
}

/** The rows to draw: from `first` up to, but not with, `end`. */
export interface Span {
  first: number;
  end: number;
}

/** Rows of one height that a scrolled view shows, and some more on both sides. */
export function visible(
  scrollTop: number,
  viewHeight: number,
  rowHeight: number,
  count: number,
  spare = 10,
): Span {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - spare);
  const end = Math.min(count, Math.ceil((scrollTop + viewHeight) / rowHeight) + spare);
  return { first: Math.min(first, end), end };
}

/** The fields of an entry as text that follows its message: ` name=value` each. */
export function fieldsText(entry: LogEntry): string {
  return Object.entries(entry.fields)
    .map(([name, value]) => ` ${name}=${fieldText(value)}`)
    .join('');
}

/** An entry as one line of text. */
export function lineOf(entry: LogEntry): string {
  const level = entry.level.toUpperCase().padEnd(5);
  return `${entry.time} ${level} ${entry.category} ${entry.message}${fieldsText(entry)}`;
}
