/** Markdown in blocks, so that only the last one is drawn again while an answer streams. */
import DOMPurify from 'dompurify';
import { Marked, type Token, type Tokens } from 'marked';

/** Code is shown by a component, everything else as sanitised HTML. */
export type Block =
  { kind: 'code'; language: string; code: string } | { kind: 'prose'; raw: string };

/** How far a text has been split. */
export interface Split {
  /** The text, with plain line ends. */
  text: string;
  /** Blocks that more text cannot change, and where they end. */
  settled: Block[];
  end: number;
  blocks: Block[];
}

export const nothingSplit: Split = { text: '', settled: [], end: 0, blocks: [] };

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}

const marked = new Marked({
  gfm: true,
  renderer: {
    // A model's HTML is text, and its images would be fetched from who knows where: both are shown, not run.
    html: ({ raw }) => escaped(raw),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
  },
});

const ALLOWED = {
  ALLOWED_TAGS: [
    ...['a', 'blockquote', 'br', 'code', 'del', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr'],
    ...[
      'input',
      'li',
      'ol',
      'p',
      'pre',
      'strong',
      'table',
      'tbody',
      'td',
      'th',
      'thead',
      'tr',
      'ul',
    ],
  ],
  ALLOWED_ATTR: ['href', 'align', 'start', 'type', 'checked', 'disabled', 'target', 'rel'],
  // Everything else is held to the pattern of addresses.
  ADD_URI_SAFE_ATTR: ['align', 'start', 'type'],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

const purify = DOMPurify();
purify.addHook('afterSanitizeAttributes', (node) => {
  if (node.tagName !== 'A') return;
  node.setAttribute('target', '_blank');
  node.setAttribute('rel', 'noopener noreferrer');
});

/** Sanitised HTML of a piece of Markdown. */
export function render(raw: string): string {
  return purify.sanitize(marked.parse(raw, { async: false }), ALLOWED);
}

function blockOf(token: Token): Block {
  if (token.type !== 'code') return { kind: 'prose', raw: token.raw };
  const { text, lang } = token as Tokens.Code;
  return { kind: 'code', language: /^\S*/.exec(lang ?? '')?.[0] ?? '', code: text };
}

/**
 * Splits `text`, going on where `before` left off if `text` only grew. A block is settled when another
 * one follows: until then a list may go on after an empty line, a paragraph may become a heading.
 */
export function split(before: Split, text: string): Split {
  const plain = text.replace(/\r\n?/g, '\n');
  const grew = plain.startsWith(before.text.slice(0, before.end));
  const { settled, end } = grew ? before : nothingSplit;
  const tokens = marked.lexer(plain.slice(end));
  const last = tokens.findLastIndex((token) => token.type !== 'space');
  const done: Block[] = [];
  const open: Block[] = [];
  let position = end;
  tokens.forEach((token, index) => {
    if (index < last) position += token.raw.length;
    if (token.type === 'space') return;
    (index < last ? done : open).push(blockOf(token));
  });
  const all = done.length > 0 ? [...settled, ...done] : settled;
  return { text: plain, settled: all, end: position, blocks: [...all, ...open] };
}
