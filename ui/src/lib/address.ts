/** Hosts and ports where the server listens: checks before anything is sent. */

/** Who can reach the server: this computer, every machine of its networks, or as a host says. */
export type Reach = 'local' | 'network' | 'custom';

export const LOCAL_HOST = '127.0.0.1';
export const ANY_HOST = '0.0.0.0';

/** A port from 1 to 65535, or null. */
export function parsePort(text: string): number | null {
  const trimmed = text.trim();
  if (!/^\d{1,5}$/.test(trimmed)) return null;
  const port = Number(trimmed);
  return port >= 1 && port <= 65_535 ? port : null;
}

/** The port to offer when one is taken; after the last comes one that needs no rights. */
export function nextPort(port: number): number {
  return port >= 65_535 ? 1024 : port + 1;
}

/** Whether only this computer can reach a host. */
export function isLoopback(host: string): boolean {
  const bare = host
    .trim()
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1');
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare);
}

export function reachOf(host: string): Reach {
  const bare = host.trim();
  if (bare === LOCAL_HOST || bare.toLowerCase() === 'localhost') return 'local';
  return bare === ANY_HOST ? 'network' : 'custom';
}

/** Whether a text can be a host: a name or an address, without scheme, port or path. */
export function isHost(text: string): boolean {
  const bare = text.trim();
  // An IPv6 address has two colons at least; one colon begins a port.
  if (/^\[?[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*\]?$/i.test(bare))
    return bare.startsWith('[') === bare.endsWith(']');
  return /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(bare);
}

/** The host and port of a socket address: `127.0.0.1:8000`, `[::1]:8000`; null if it is none. */
export function splitAddress(address: string): { host: string; port: number } | null {
  const [, host = '', port = ''] = /^(\[[^\]]+\]|[^:]+):(\d+)$/.exec(address) ?? [];
  const number = parsePort(port);
  return number === null ? null : { host, port: number };
}
