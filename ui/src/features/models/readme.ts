/** A model card as HTML that can do nothing: no scripts, styles, forms, or pictures from elsewhere. */
import DOMPurify, { type Config } from 'dompurify';
import { Marked } from 'marked';

const marked = new Marked({ gfm: true });

const ALLOWED: Config = {
  ALLOWED_TAGS: [
    ...['a', 'b', 'blockquote', 'br', 'code', 'dd', 'del', 'details', 'div', 'dl', 'dt', 'em'],
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'i', 'img', 'kbd', 'li', 'ol', 'p', 'pre'],
    ...['span', 'strong', 'sub', 'summary', 'sup', 'table', 'tbody', 'td', 'th', 'thead', 'tr'],
    'ul',
  ],
  ALLOWED_ATTR: ['href', 'src', 'alt', 'align', 'start', 'open', 'colspan', 'rowspan'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

/** The address of a link on the hub's page of the model; null for what leads nowhere from here. */
function resolved(target: string | null, base: string): string | null {
  // `#part` would be a route of this app.
  if (!target || target.startsWith('#')) return null;
  try {
    const url = new URL(target, base);
    return ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function outside(link: HTMLAnchorElement, address: string): void {
  link.setAttribute('href', address);
  link.setAttribute('target', '_blank');
  link.setAttribute('rel', 'noopener noreferrer');
}

/**
 * Sanitised HTML of the Markdown of a model card. `base` is where its relative links start
 * (`https://huggingface.co/owner/name/blob/main/`). Pictures become links to them.
 */
export function readmeHtml(markdown: string, base: string): string {
  const dirty = marked.parse(markdown, { async: false });
  const content = DOMPurify.sanitize(dirty, { ...ALLOWED, RETURN_DOM_FRAGMENT: true });
  for (const image of content.querySelectorAll('img')) {
    const address = resolved(image.getAttribute('src'), base);
    const text = image.getAttribute('alt')?.trim();
    // Without a description it is most often a badge or a banner.
    if (!text || !address || image.closest('a')) image.replaceWith(text ?? '');
    else {
      const link = document.createElement('a');
      link.textContent = text;
      outside(link, address);
      image.replaceWith(link);
    }
  }
  for (const link of content.querySelectorAll('a')) {
    const address = resolved(link.getAttribute('href'), base);
    if (!link.textContent?.trim()) link.remove();
    else if (address) outside(link, address);
    else link.replaceWith(...link.childNodes);
  }
  // The page has its own first headings.
  for (const heading of content.querySelectorAll('h1, h2, h3, h4')) {
    const lower = document.createElement(`h${Number(heading.tagName[1]) + 2}`);
    lower.append(...heading.childNodes);
    heading.replaceWith(lower);
  }
  const holder = document.createElement('div');
  holder.append(content);
  return holder.innerHTML;
}
