import { expect, it } from 'vitest';
import { readmeHtml } from './readme';

const html = (markdown: string) =>
  readmeHtml(markdown, 'https://hub.example/a/b/blob/main/').trim();

it('writes Markdown below the headings of the page', () => {
  expect(html('# Title\n\nSome **bold** text.')).toBe(
    '<h3>Title</h3>\n<p>Some <strong>bold</strong> text.</p>',
  );
  expect(html('#### Deep')).toBe('<h6>Deep</h6>');
});

it('keeps harmless HTML and drops what could act', () => {
  const out = html(
    '<div align="center" onclick="x()" style="color:red" id="app" class="fixed">Hi</div>\n\n' +
      '<script>alert(1)</script><iframe src="https://x"></iframe><form><input></form>\n\n' +
      '<svg><a xlink:href="javascript:alert(1)">s</a></svg>',
  );
  expect(out).toContain('<div align="center">Hi</div>');
  expect(out).not.toMatch(/script|iframe|form|input|svg|style|onclick|class=|id=/);
});

it('opens links outside and resolves relative ones', () => {
  expect(html('[x](https://e.org)')).toContain(
    '<a href="https://e.org/" target="_blank" rel="noopener noreferrer">x</a>',
  );
  expect(html('[licence](LICENSE)')).toContain('href="https://hub.example/a/b/blob/main/LICENSE"');
});

it('leaves the text of links that lead nowhere', () => {
  expect(html('[part](#part) [bad](javascript:alert(1)) [odd](data:text/html,x)')).toBe(
    '<p>part bad odd</p>',
  );
});

it('loads no pictures', () => {
  expect(html('![A chart](chart.png)')).toBe(
    '<p><a href="https://hub.example/a/b/blob/main/chart.png" target="_blank" rel="noopener noreferrer">A chart</a></p>',
  );
  expect(html('[![](https://img/badge.svg)](https://e.org)')).toBe('<p></p>');
  expect(html('<img src="x" onerror="alert(1)">')).toBe('');
});
