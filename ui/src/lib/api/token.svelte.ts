/** The control token of a browser: comes in the URL fragment, lives in sessionStorage. */

const KEY = 'macmlx.control-token';

export type TokenState = 'unknown' | 'missing' | 'wrong';

let value = $state<string | null>(null);
let state = $state<TokenState>('unknown');

/** Takes `#token=…` out of the address bar (a route may follow as `&route=`), else what the session holds. */
export function adoptToken(location: Location, history: History): void {
  const fragment = new URLSearchParams(location.hash.replace(/^#/, ''));
  const given = fragment.get('token');
  if (given) {
    sessionStorage.setItem(KEY, given);
    const route = fragment.get('route');
    history.replaceState(
      null,
      '',
      location.pathname + location.search + (route ? `#${route}` : ''),
    );
  }
  value = given ?? sessionStorage.getItem(KEY);
  state = value ? 'unknown' : 'missing';
}

export const token = {
  /** The token, or null. */
  get value() {
    return value;
  },
  /** `missing` and `wrong` make the app ask for one. */
  get state() {
    return state;
  },
  set(next: string) {
    const trimmed = next.trim();
    // A pasted address serves as well as the token itself.
    value = /[#&]token=([^&\s]+)/.exec(trimmed)?.[1] ?? trimmed;
    sessionStorage.setItem(KEY, value);
    state = 'unknown';
  },
  /** Called when the server did not take it. */
  refuse() {
    state = value ? 'wrong' : 'missing';
  },
};
