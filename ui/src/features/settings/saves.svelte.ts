/** Settings that are being saved: shown at once, taken back with the error when they are refused. */
import type { QueryClient } from '@tanstack/svelte-query';
import { call, client, errorText, queries } from '$lib/api';
import { sent, valueOf, type Document, type SettingKey, type Value } from './setting-list';

export class Saves {
  #wanted = $state<Partial<Record<SettingKey, Value>>>({});
  #errors = $state<Partial<Record<SettingKey, string>>>({});
  // One at a time, so that the last answer is the last state.
  #queue: Promise<void> = Promise.resolve();

  constructor(private readonly cache: QueryClient) {}

  /** The value to show: what was asked for, else what is stored. */
  value(document: Document, key: SettingKey): Value {
    const wanted = this.#wanted[key];
    return wanted === undefined ? valueOf(document, key) : wanted;
  }

  error(key: SettingKey): string | undefined {
    return this.#errors[key];
  }

  /** Forgets why a key was refused, because something else is tried. */
  clear(key: SettingKey): void {
    this.#errors = { ...this.#errors, [key]: undefined };
  }

  /** Stores `value` (null removes the key) and shows `shown` meanwhile. */
  save(key: SettingKey, value: Value, shown: Value): Promise<void> {
    this.#wanted = { ...this.#wanted, [key]: shown };
    this.clear(key);
    this.#queue = this.#queue.then(() => this.#send(key, value, shown));
    return this.#queue;
  }

  async #send(key: SettingKey, value: Value, shown: Value): Promise<void> {
    try {
      const reply = await call(client.PATCH('/x/settings', { body: { [key]: sent(key, value) } }));
      this.cache.setQueryData(queries.settings().queryKey, reply);
    } catch (error) {
      this.#errors = { ...this.#errors, [key]: errorText(error) };
    }
    // A later wish for the same key is still on its way.
    if (this.#wanted[key] === shown) this.#wanted = { ...this.#wanted, [key]: undefined };
  }
}
