/** Numbers, sizes, durations and dates as the language of the UI writes them. */
import { locale } from './index.svelte';

const cache = new Map<string, Intl.NumberFormat>();

function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = locale.current + JSON.stringify(options);
  const format = cache.get(key) ?? new Intl.NumberFormat(locale.current, options);
  cache.set(key, format);
  return format;
}

/** `12,345.6`. */
export function formatNumber(value: number, digits = 0): string {
  return numberFormat({ maximumFractionDigits: digits }).format(value);
}

/** A share between 0 and 1: `42%`. */
export function formatPercent(share: number): string {
  return numberFormat({ style: 'percent', maximumFractionDigits: 0 }).format(share);
}

/** `1.7B`, `350M`: counts of parameters, downloads. */
export function formatCompact(value: number): string {
  // Parameter counts are written in the Latin short form in every language of this field.
  const format =
    cache.get('compact') ??
    new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
  cache.set('compact', format);
  return format.format(value);
}

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'] as const;

/** Decimal units, as Finder and the hub show them: `4.3 GB`. */
export function formatBytes(bytes: number): string {
  const step = bytes < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** step;
  return numberFormat({
    style: 'unit',
    unit: UNITS[step] ?? 'byte',
    unitDisplay: step === 0 ? 'narrow' : 'short',
    maximumFractionDigits: step >= 2 && value < 100 ? 1 : 0,
  }).format(value);
}

/** Bytes per second: `12 MB/s`. */
export function formatRate(bytesPerSecond: number): string {
  return `${formatBytes(bytesPerSecond)}/s`;
}

function unit(value: number, name: string, digits = 0): string {
  return numberFormat({
    style: 'unit',
    unit: name,
    unitDisplay: 'narrow',
    maximumFractionDigits: digits,
  }).format(value);
}

/** The two largest units of a length of time: `420 ms`, `3.2 s`, `4 m 10 s`, `2 h 5 m`. */
export function formatDuration(seconds: number): string {
  if (seconds < 1) return unit(Math.round(seconds * 1000), 'millisecond');
  if (seconds < 10) return unit(seconds, 'second', 1);
  const whole = Math.round(seconds);
  if (whole < 60) return unit(whole, 'second');
  if (whole < 3600)
    return `${unit(Math.floor(whole / 60), 'minute')} ${unit(whole % 60, 'second')}`;
  const minutes = Math.round(whole / 60);
  if (minutes < 48 * 60)
    return `${unit(Math.floor(minutes / 60), 'hour')} ${unit(minutes % 60, 'minute')}`;
  return unit(Math.round(minutes / 1440), 'day');
}

/** `3 Mar 2026`, `14:05`, or both. */
export function formatDate(time: string | Date, style: 'date' | 'time' | 'both' = 'both'): string {
  return new Intl.DateTimeFormat(locale.current, {
    dateStyle: style === 'time' ? undefined : 'medium',
    timeStyle: style === 'date' ? undefined : style === 'time' ? 'medium' : 'short',
  }).format(new Date(time));
}

/** `5 minutes ago`, `yesterday`. */
export function formatRelative(time: string | Date, now = new Date()): string {
  const seconds = (new Date(time).getTime() - now.getTime()) / 1000;
  const format = new Intl.RelativeTimeFormat(locale.current, { numeric: 'auto' });
  const steps: [number, Intl.RelativeTimeFormatUnit][] = [
    [60, 'second'],
    [3600, 'minute'],
    [86_400, 'hour'],
    [2_592_000, 'day'],
    [31_536_000, 'month'],
    [Infinity, 'year'],
  ];
  let divisor = 1;
  for (const [limit, name] of steps) {
    if (Math.abs(seconds) < limit) return format.format(Math.round(seconds / divisor), name);
    divisor = limit;
  }
  return format.format(0, 'second');
}
