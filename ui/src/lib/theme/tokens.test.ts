import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync('src/lib/theme/tokens.css', 'utf8');

function tokens(selector: string): Map<string, string> {
  const body = css.split(`${selector} {`)[1]?.split('\n}')[0] ?? '';
  return new Map(
    [...body.matchAll(/--([\w-]+):\s*([^;]+);/g)].map(([, k, v]) => [k ?? '', v ?? '']),
  );
}

/** Relative luminance (WCAG 2) of an opaque `oklch(L C H)`; the matrices are those of CSS Color 4. */
function luminance(colour: string): number {
  const [l, c, h] = (/oklch\(([\d.]+) ([\d.]+) ?([\d.]+)?\)/.exec(colour)?.slice(1) ?? []).map(
    Number,
  );
  if (l == null || c == null) throw new Error(`not an opaque oklch colour: ${colour}`);
  const angle = ((h ?? 0) * Math.PI) / 180;
  const [a, b] = [c * Math.cos(angle), c * Math.sin(angle)];
  const lms = [
    l + 0.3963377774 * a + 0.2158037573 * b,
    l - 0.1055613458 * a - 0.0638541728 * b,
    l - 0.0894841775 * a - 1.291485548 * b,
  ].map((x) => x ** 3) as [number, number, number];
  const clamp = (x: number) => Math.min(1, Math.max(0, x));
  const red = clamp(4.0767416621 * lms[0] - 3.3077115913 * lms[1] + 0.2309699292 * lms[2]);
  const green = clamp(-1.2684380046 * lms[0] + 2.6097574011 * lms[1] - 0.3413193965 * lms[2]);
  const blue = clamp(-0.0041960863 * lms[0] - 0.7034186147 * lms[1] + 1.707614701 * lms[2]);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function ratio(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((x, y) => x - y) as [
    number,
    number,
  ];
  return (light + 0.05) / (dark + 0.05);
}

const backgrounds = ['bg', 'sidebar', 'surface', 'raised', 'hover', 'code'];
const textPairs: [string, string][] = [
  ...['text', 'muted', 'accent-text', 'success', 'warning', 'danger'].flatMap((text) =>
    backgrounds.map((ground): [string, string] => [text, ground]),
  ),
  ['text', 'active'],
  ['muted', 'active'],
  ['on-accent', 'accent'],
  ['on-accent', 'accent-hover'],
  ['on-danger', 'danger-fill'],
  ['accent-text', 'accent-soft'],
  ['text', 'accent-soft'],
  ['muted', 'accent-soft'],
  ['success', 'success-soft'],
  ['warning', 'warning-soft'],
  ['danger', 'danger-soft'],
  ['text', 'danger-soft'],
  ['text', 'warning-soft'],
  ...['keyword', 'string', 'number', 'title', 'comment'].map((name): [string, string] => [
    `syntax-${name}`,
    'code',
  ]),
];
const uiPairs = ['accent', 'focus', 'success', 'warning', 'danger'].flatMap((mark) =>
  ['bg', 'sidebar', 'surface'].map((ground): [string, string] => [mark, ground]),
);

describe.each([':root', ":root[data-theme='dark']"])('contrast of %s', (selector) => {
  const map = tokens(selector);
  const get = (name: string) => map.get(name) ?? `missing --${name}`;
  it.each(textPairs)('%s on %s is readable', (text, ground) => {
    expect(ratio(get(text), get(ground))).toBeGreaterThanOrEqual(4.5);
  });
  it.each(uiPairs)('%s on %s can be made out', (mark, ground) => {
    expect(ratio(get(mark), get(ground))).toBeGreaterThanOrEqual(3);
  });
});

it('computes the ratios of black and white', () => {
  expect(ratio('oklch(0 0 0)', 'oklch(1 0 0)')).toBeCloseTo(21, 1);
});
