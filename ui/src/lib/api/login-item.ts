/** The login item: whether the desktop app starts with the session, through the shell's plug-in. */
import { isDesktop } from './door';

async function ask<T>(command: string): Promise<T> {
  const { invoke } = await import('@tauri-apps/api/core');
  return invoke<T>(`plugin:autostart|${command}`);
}

/** Null in a browser, which has no say in it. */
export const loginItem = isDesktop
  ? {
      isEnabled: () => ask<boolean>('is_enabled'),
      setEnabled: (isEnabled: boolean) => ask<null>(isEnabled ? 'enable' : 'disable'),
    }
  : null;
