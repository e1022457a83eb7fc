/** Hash routes: `#/models/hub?search=qwen`. Each segment is percent-encoded. */

export interface Route {
  /** Decoded segments: `['chat', '<id>']`. */
  path: string[];
  query: URLSearchParams;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The route of a location's hash. */
export function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  return {
    path: path.split('/').filter(Boolean).map(decoded),
    query: new URLSearchParams(query),
  };
}

/** The hash of segments and a query: `href('models', 'a/b')` is `#/models/a%2Fb`. */
export function href(...parts: (string | Record<string, string | undefined>)[]): string {
  const segments: string[] = [];
  const query = new URLSearchParams();
  for (const part of parts) {
    if (typeof part === 'string') segments.push(encodeURIComponent(part));
    else for (const [key, value] of Object.entries(part)) if (value) query.set(key, value);
  }
  const tail = query.toString();
  return `#/${segments.join('/')}${tail ? `?${tail}` : ''}`;
}

let current = $state.raw<Route>(parse(typeof location === 'undefined' ? '' : location.hash));

if (typeof window !== 'undefined') {
  window.addEventListener('hashchange', () => {
    current = parse(location.hash);
  });
}

/** The route shown now (reactive). */
export const route = {
  get path() {
    return current.path;
  },
  get query() {
    return current.query;
  },
};

/** Goes to a route. `replace` leaves no entry in the history. */
export function go(hash: string, options: { replace?: boolean } = {}): void {
  if (options.replace) history.replaceState(null, '', hash);
  else if (location.hash !== hash) history.pushState(null, '', hash);
  current = parse(hash);
}
