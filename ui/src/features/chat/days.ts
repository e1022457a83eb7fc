/** Conversations by the day they were last touched. */
import type { ConversationSummary } from '$lib/api';

export type Age = 'today' | 'yesterday' | 'week' | 'month' | 'older';

/** Whole days between two moments on the local calendar. */
function daysBetween(then: Date, now: Date): number {
  const midnight = (date: Date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return Math.round((midnight(now) - midnight(then)) / 86_400_000);
}

/** How long ago, as the list is divided: the last 7 days are the week, the last 30 the month. */
export function ageOf(time: string, now: Date): Age {
  const days = daysBetween(new Date(time), now);
  if (days <= 0) return 'today';
  if (days === 1) return 'yesterday';
  if (days <= 7) return 'week';
  return days <= 30 ? 'month' : 'older';
}

/** Groups a list that is newest first; groups without members are left out. */
export function byAge(
  list: ConversationSummary[],
  now: Date,
): { age: Age; items: ConversationSummary[] }[] {
  const groups = new Map<Age, ConversationSummary[]>();
  for (const item of list) {
    const age = ageOf(item.updated_at, now);
    groups.set(age, [...(groups.get(age) ?? []), item]);
  }
  return [...groups].map(([age, items]) => ({ age, items }));
}
