/** The screens of the app: one line each; the code of a screen is loaded when it is first shown. */
import Box from '@lucide/svelte/icons/box';
import MessageSquare from '@lucide/svelte/icons/message-square';
import Plug from '@lucide/svelte/icons/plug';
import ScrollText from '@lucide/svelte/icons/scroll-text';
import Server from '@lucide/svelte/icons/server';
import Settings from '@lucide/svelte/icons/settings';
import type { Component } from 'svelte';
import type { Key } from '$lib/i18n/index.svelte';

export interface Screen {
  /** The first segment of its routes. */
  id: string;
  title: Key;
  load: () => Promise<{ default: Component }>;
}

/** A screen with a place in the navigation, in its order. */
export interface MainScreen extends Screen {
  icon: Component<{ size?: number }>;
}

export const mainScreens: MainScreen[] = [
  {
    id: 'chat',
    title: 'chat.title',
    icon: MessageSquare,
    load: () => import('../features/chat/index.svelte'),
  },
  {
    id: 'models',
    title: 'models.title',
    icon: Box,
    load: () => import('../features/models/index.svelte'),
  },
  {
    id: 'server',
    title: 'server.title',
    icon: Server,
    load: () => import('../features/server/index.svelte'),
  },
  { id: 'mcp', title: 'mcp.title', icon: Plug, load: () => import('../features/mcp/index.svelte') },
  {
    id: 'settings',
    title: 'settings.title',
    icon: Settings,
    load: () => import('../features/settings/index.svelte'),
  },
  {
    id: 'logs',
    title: 'logs.title',
    icon: ScrollText,
    load: () => import('../features/logs/index.svelte'),
  },
];

/** Shown instead of everything else until the first run is done; `#/welcome` shows it again. */
export const welcome: Screen = {
  id: 'welcome',
  title: 'first-run.title',
  load: () => import('../features/first-run/index.svelte'),
};

export const screens: Screen[] = [...mainScreens, welcome];
