import { describe, expect, it } from 'vitest';
import { nothingSplit, render, split, type Block } from './markdown';

const sample = `# Title

A paragraph with **bold**, \`code\`
and a second line.

- one
- two

  still two
- three

1. first
2. second

\`\`\`python
def f():

    return "# not a title"
\`\`\`

| a | b |
|---|--:|
| 1 | 2 |

> quoted
continued

Setext
======

    indented code

\`\`\`
never closed
- not a list`;

const whole = (text: string): Block[] => split(nothingSplit, text).blocks;

describe('splitting', () => {
  it('finds code and prose', () => {
    const kinds = whole(sample).map((block) => block.kind);
    expect(kinds.filter((kind) => kind === 'code')).toHaveLength(3);
    expect(whole(sample).find((block) => block.kind === 'code')).toEqual({
      kind: 'code',
      language: 'python',
      code: 'def f():\n\n    return "# not a title"',
    });
  });

  it('gives the same blocks character by character as at once', () => {
    let state = nothingSplit;
    for (let end = 1; end <= sample.length; end += 1) {
      state = split(state, sample.slice(0, end));
      expect(state.blocks).toEqual(whole(sample.slice(0, end)));
    }
  });

  it('gives the same blocks at every two-way split', () => {
    for (let at = 0; at <= sample.length; at += 1)
      expect(split(split(nothingSplit, sample.slice(0, at)), sample).blocks).toEqual(whole(sample));
  });

  it('keeps settled blocks as they are and reads only the rest', () => {
    const first = split(nothingSplit, 'One.\n\nTwo.\n\nThr');
    const second = split(first, 'One.\n\nTwo.\n\nThree.');
    expect(second.blocks[0]).toBe(first.blocks[0]);
    expect(first.end).toBe('One.\n\nTwo.\n\n'.length);
  });

  it('starts anew when the text is another one', () => {
    const first = split(nothingSplit, 'One.\n\nTwo.\n\nThree.');
    expect(split(first, 'Something else.').blocks).toEqual(whole('Something else.'));
  });

  it('takes all line ends', () => {
    const crlf = sample.replaceAll('\n', '\r\n');
    let state = nothingSplit;
    for (let end = 1; end <= crlf.length; end += 7) state = split(state, crlf.slice(0, end));
    expect(split(state, crlf).blocks).toEqual(whole(sample));
  });
});

describe('rendering', () => {
  it('opens links outside', () => {
    expect(render('[x](https://a.b)')).toBe(
      '<p><a href="https://a.b" target="_blank" rel="noopener noreferrer">x</a></p>\n',
    );
  });

  it('keeps the alignment of tables', () => {
    expect(render('| a | b |\n|---|--:|\n| 1 | 2 |')).toContain('<td align="right">2</td>');
  });

  it('shows task lists and the first number of a list', () => {
    const dom = new DOMParser().parseFromString(
      render('- [x] done\n\ntext\n\n3. three'),
      'text/html',
    );
    expect(dom.querySelector('input')?.outerHTML).toContain('type="checkbox"');
    expect(dom.querySelector('input')?.checked).toBe(true);
    expect(dom.querySelector('ol')?.start).toBe(3);
  });

  it.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    'text <b onclick="x()">bold</b>',
    '[x](javascript:alert(1))',
    '[x](data:text/html,hi)',
    '![x](https://tracker.example/pixel.png)',
    '![x" onerror="y](z)',
    '<iframe src="https://a.b"></iframe>',
    '<style>p{}</style>',
  ])('never runs or fetches anything: %s', (markdown) => {
    const dom = new DOMParser().parseFromString(render(markdown), 'text/html');
    expect(dom.querySelector('script, img, iframe, style, b')).toBeNull();
    for (const node of dom.querySelectorAll('*'))
      for (const { name, value } of node.attributes) {
        expect(name).not.toMatch(/^on/);
        if (name === 'href') expect(value).toMatch(/^(https?|mailto):/);
      }
    expect(dom.body.textContent.trim()).not.toBe('');
  });
});
